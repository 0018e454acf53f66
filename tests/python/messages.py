# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Messages between two ranks: content, order, tags, any source, truncation, what is refused."""
import coll
import numpy as np

from refused import refused


def content(world):
    """Each rank to each, in any type and size, also to itself, beside collectives."""
    for dtype in ["i1", "i8", "f2", "f8", "c16", "?"]:
        for count in [0, 1, 1000, 100000]:
            sends = [world.isend(((np.arange(count) + world.rank) % 2).astype(dtype), dest, 5)
                     for dest in range(world.size)]
            world.barrier()
            for source in range(world.size):
                out = np.zeros(count + 3, dtype)
                got = world.recv(out, source, 5)
                assert got == (source, 5, count) and isinstance(got, coll.Received), got
                assert np.array_equal(out[:count], ((np.arange(count) + source) % 2).astype(dtype))
                assert not out[count:].any()
            coll.waitall(sends)


def tags(world):
    """A receive takes what its tag fits; messages of one tag keep their order."""
    peer, back = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    sends = [world.isend(np.array([tag, i]), peer, tag) for i in range(3) for tag in [7, 2 ** 31 - 1]]
    for tag in [2 ** 31 - 1, 7]:
        for i in range(3):
            out = np.zeros(2, int)
            assert world.recv(out, source=back, tag=tag).tag == tag
            assert list(out) == [tag, i]
    coll.waitall(sends)
    requests = [world.irecv(np.zeros(1, int), back) for _ in range(2)]
    assert requests[0].result is None
    world.send(np.array([1]), dest=peer, tag=3)
    world.send(np.array([2]), dest=peer, tag=4)
    assert [request.wait().tag for request in requests] == [3, 4]
    assert requests[1].result == (back, 4, 1) and not requests[1].active


def any_source(world):
    if world.rank:
        world.send(np.full(2, world.rank), 0, world.rank)
        return
    seen = set()
    for _ in range(world.size - 1):
        out = np.zeros(2, int)
        got = world.recv(out, coll.ANY_SOURCE, coll.ANY_TAG)
        assert out[0] == got.source == got.tag
        seen.add(got.source)
    assert seen == set(range(1, world.size))


def truncation(world):
    """The message is lost, and all else goes on."""
    me = world.rank
    world.isend(np.arange(4), me).wait()
    request = world.irecv(np.zeros(3, int), me)
    refused(coll.TruncatedError, "message", request.wait)
    assert request.result.source == me
    world.send(bytes(3), me)
    refused(ValueError, "", world.recv, np.zeros(3, "i2"), me)
    world.barrier()


def arguments(world):
    data = np.zeros(1)
    refused(TypeError, "send: sendbuf: list has no buffer", world.send, [1], 0)
    refused(ValueError, "send: sendbuf: it is IN_PLACE", world.send, coll.IN_PLACE, 0)
    refused(ValueError, "recv: recvbuf: it is IN_PLACE", world.irecv, coll.IN_PLACE, 0)
    refused(ValueError, "recv: recvbuf: .*read-only", world.recv, bytes(1), 0)
    refused(coll.ArgumentError, "rank", world.send, data, world.size)
    refused(coll.ArgumentError, "rank", world.send, data, coll.ANY_SOURCE)
    refused(coll.ArgumentError, "tag", world.send, data, 0, -1)
    refused(coll.ArgumentError, "tag", world.recv, data, 0, -2)
    refused(TypeError, "dest", world.send, data)
    refused(TypeError, "argument", world.send, data, 0, 0, coll.DOUBLE)


if __name__ == "__main__":
    with coll.open(deadline="20s", measure="start") as context:
        for check in [content, tags, any_source, truncation, arguments]:
            check(context.world)
            context.world.barrier()
        assert context.world.size == 1 or "node_alpha " in context.costs(), context.costs()
