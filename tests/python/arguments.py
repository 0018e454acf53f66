# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""What is refused, by which exception, and that its text names call, argument and what is valid."""
import os

import coll
import numpy as np

from refused import refused


def buffers(world):
    data = np.arange(8.0)
    frozen = data.copy()
    frozen.flags.writeable = False
    call = world.allreduce
    refused(TypeError, "allreduce: sendbuf: list has no buffer; valid", call, [1, 2])
    refused(TypeError, "allreduce: recvbuf: int has no buffer", call, data, 3)
    refused(ValueError, "allreduce: recvbuf: .*read-only", call, data, frozen)
    refused(ValueError, "allreduce: recvbuf: .*read-only", call, data, bytes(64))
    refused(ValueError, "allreduce: sendbuf: .*not contiguous; .*ascontiguousarray", call, data[::2])
    refused(ValueError, "allreduce: sendbuf: .*not contiguous", call,
            np.asfortranarray(np.ones((2, 3))))
    refused(TypeError, "allreduce: sendbuf: .*Python objects", call, np.array([None]))
    refused(TypeError, "allreduce: recvbuf: .*FLOAT, those of sendbuf DOUBLE", call, data,
            np.zeros(8, "f4"))
    refused(ValueError, "allreduce: recvbuf: it has 7 elements; valid: 8", call, data, np.zeros(7))
    refused(TypeError, "allreduce: recvbuf: it is missing", call, coll.IN_PLACE)
    refused(ValueError, "allreduce: recvbuf: it is IN_PLACE", call, data, coll.IN_PLACE)
    refused(TypeError, r"sendbuf: .*opaque\(8\) cannot be reduced", call, data.astype(">f8"))
    refused(TypeError, "op: booleans have no SUM", call, np.ones(2, "?"))
    refused(ValueError, "op: it is no reduction", call, data, op=12)
    refused(ValueError, "op: it is no reduction", call, data, op="sum")
    refused(coll.ArgumentError, r"allreduce: op \(band\) is not defined for type", call, data,
            op=coll.BAND)
    refused(ValueError, "type: 19 is no type", call, data, type=19)
    refused(ValueError, "sendbuf: its 3 bytes are no whole number", call, bytes(3), bytearray(3),
            type=coll.INT16)
    refused(coll.ArgumentError, "overlap", call, data, data)
    refused(TypeError, "argument", call)
    refused(TypeError, "argument", call, data, none=1)


def counts(world):
    n = world.size
    data = np.arange(4.0)
    refused(ValueError, f"counts: it has {n + 1} entries; valid: {n}", world.allgatherv, data,
            np.zeros(8), [1] * (n + 1))
    refused(ValueError, "counts: entry 0 is no count", world.allgatherv, data, np.zeros(8),
            [-1] * n)
    refused(ValueError, "counts: entry 0 is no count", world.allgatherv, data, np.zeros(8),
            [1.5] * n)
    refused(ValueError, "recvbuf: it has 3 elements, but the block of rank 0 is elements 0 to 3",
            world.allgatherv, data, np.zeros(3), [4] * n)
    refused(ValueError, "recvbuf: it has 9 elements, but the block of rank 0 is elements 7 to 10",
            world.allgatherv, data, np.zeros(9), [4] * n, [7] * n)
    refused(ValueError, "sendbuf: it has 4 elements; valid: 2", world.allgatherv, data,
            np.zeros(2 * n), [2] * n)
    refused(ValueError, "recvbuf: it has", world.alltoallv, np.zeros(n), np.zeros(n - 1), [1] * n,
            [1] * n)
    huge = [2 ** 64 - 1] * n
    refused(ValueError, "recvbuf: it has 4 elements, but", world.allgatherv, data, np.zeros(4),
            huge, [2] * n)
    refused(ValueError, "multiple of the", world.alltoall, np.zeros(2 * n + 1)) if n > 1 else None
    refused(ValueError, "recvbuf: it has .*all blocks", world.allgather, data, np.zeros(4 * n + 1))
    refused(coll.ArgumentError, r"root \(99\) is no rank", world.bcast, data, 99)
    refused(TypeError, "counts: it is missing", world.gatherv, data, np.zeros(4), root=world.rank)


def objects(context, world):
    error = refused(coll.ArgumentError, "ranks", world.from_ranks, [0, 0])
    assert error.rank is None and error.call == "from_ranks" and isinstance(error, ValueError)
    refused(ValueError, "split: color: -1; valid", world.split, -1)
    refused(ValueError, "world belongs to the context", world.close)
    refused(coll.ArgumentError, "deadline", world.set, deadline="soon")
    refused(TypeError, "function: it cannot be called", context.op, 3)
    refused(TypeError, r"requests\[0\] is no coll.Request", coll.waitall, [1])
    refused(TypeError, "cannot create", coll.Group)
    request = world.ibarrier()
    request.wait()
    refused(ValueError, "start: the request is not persistent", request.start)
    again = world.barrier_init()
    again.start()
    refused(ValueError, "start: the request is in flight", again.start)
    refused(ValueError, "close: the request is in flight", again.close)
    again.wait()
    again.wait()
    again.close()
    again.close()
    refused(coll.ArgumentError, "closed", again.start)
    refused(ValueError, "no time", request.set_deadline, -1)
    alone = world.split(world.rank)
    alone.close()
    refused(ValueError, "the group is closed", alone.barrier)
    alone.close()
    refused(ValueError, "has a space", coll.open, deadline="5 s")
    refused(coll.ArgumentError, "deadline", coll.open, deadline="soon")
    os.environb[b"COLL_ALLREDUCE"] = b"\xff"      # what an error cites may be no UTF-8
    refused(coll.ArgumentError, "allreduce.*\ufffd", coll.open)
    del os.environb[b"COLL_ALLREDUCE"]


with coll.open(deadline="20s") as context:
    world = context.world
    buffers(world)
    counts(world)
    objects(context, world)
    later = world.allreduce_init(np.ones(1))
    dropped = context.op(np.add)
refused(ValueError, "the context is closed", lambda: context.world)
refused(ValueError, "closed", world.barrier)
refused(ValueError, "closed", later.start)
assert not later.active
