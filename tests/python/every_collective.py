# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Every collective in its three forms, for types, shapes and kinds of buffers, against NumPy."""
import array
import os

import coll
import numpy as np

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?"]


def block(rank, count, dtype):
    """Rank's data: small whole numbers, exact in every type."""
    return ((np.arange(count) * 3 + rank) % 5).astype(dtype)


def run(world, name, form, *args, **kwargs):
    """Calls a collective in one form; persistent ones twice, the result is the second's."""
    if form == "blocking":
        return getattr(world, name)(*args, **kwargs)
    if form == "nonblocking":
        request = getattr(world, "i" + name)(*args, **kwargs)
        result = request.wait()
        assert not request.active and not request.persistent
        return result
    with getattr(world, name + "_init")(*args, **kwargs) as request:
        assert request.persistent and not request.active
        result = request.start().wait()
        return result


def same(got, wanted, what):
    assert np.array_equal(np.asarray(got), wanted), f"{what}: {got}, wanted {wanted}"


def moves(world, form, dtype, count):
    n, me = world.size, world.rank
    every = np.stack([block(r, count, dtype) for r in range(n)])
    mine = every[me]
    root = n - 1

    run(world, "barrier", form)
    data = mine.copy()
    same(run(world, "bcast", form, data, root), every[root], "bcast")
    got = run(world, "gather", form, mine, None, root)
    assert (got is None) == (me != root)
    if me == root:
        same(got, every, "gather")
    out = np.zeros(count, dtype)
    same(run(world, "scatter", form, every if me == root else None, out, root), mine, "scatter")
    same(run(world, "allgather", form, mine), every, "allgather")
    out = np.zeros((n, count), dtype)
    out[me] = mine
    same(run(world, "allgather", form, coll.IN_PLACE, out), every, "allgather in place")
    table = np.concatenate([block(me + 7 * r, count, dtype) for r in range(n)])
    wanted = np.concatenate([block(r + 7 * me, count, dtype) for r in range(n)])
    same(run(world, "alltoall", form, table), wanted, "alltoall")
    same(run(world, "alltoall", form, coll.IN_PLACE, table.copy()), wanted, "alltoall in place")


def moves_of_counts(world, form, dtype):
    n, me = world.size, world.rank
    counts = [2 * r + 1 for r in range(n)]
    mine = block(me, counts[me], dtype)
    every = np.concatenate([block(r, counts[r], dtype) for r in range(n)])
    apart = [sum(counts[:r]) + r for r in range(n)]     # an element between the blocks

    out = np.zeros(sum(counts), dtype)
    got = run(world, "gatherv", form, mine, out if me == 0 else None,
              counts if me == 0 else None)
    if me == 0:
        same(got, every, "gatherv")
    got = run(world, "scatterv", form, every if me == 0 else None, np.zeros_like(mine),
              counts if me == 0 else None)
    same(got, mine, "scatterv")
    same(run(world, "allgatherv", form, mine, np.zeros_like(every), counts), every, "allgatherv")
    out = np.zeros(sum(counts) + n, dtype)
    run(world, "allgatherv", form, mine, out, counts, apart)
    for r in range(n):
        same(out[apart[r]:apart[r] + counts[r]], block(r, counts[r], dtype), "allgatherv, displs")
    send = np.concatenate([block(me + r, me + r + 1, dtype) for r in range(n)])
    lengths = [me + r + 1 for r in range(n)]
    got = run(world, "alltoallv", form, send, np.zeros_like(send), lengths, lengths)
    same(got, send, "alltoallv")    # the block of r and me is the same in both directions


def reductions(world, form, dtype, count):
    n, me = world.size, world.rank
    every = np.stack([block(r, count * n, dtype) for r in range(n)])
    mine, root = every[me], n // 2
    logical = dtype == "?"
    op, ufunc = (coll.LOR, np.logical_or) if logical else (coll.SUM, np.add)
    total = ufunc.reduce(every).astype(dtype)

    got = run(world, "reduce", form, mine, None, op, root)
    assert (got is None) == (me != root)
    if me == root:
        same(got, total, "reduce")
    same(run(world, "allreduce", form, mine, op=op), total, "allreduce")
    same(run(world, "allreduce", form, coll.IN_PLACE, mine.copy(), op), total, "in place")
    same(run(world, "reduce_scatter_block", form, mine, op=op),
         total[me * count:(me + 1) * count], "reduce_scatter_block")
    counts = [count] * n
    counts[0], counts[-1] = counts[0] - 1, counts[-1] + 1
    if n > 1:
        at = sum(counts[:me])
        same(run(world, "reduce_scatter", form, mine, np.zeros(counts[me], dtype), counts, op),
             total[at:at + counts[me]], "reduce_scatter")
    same(run(world, "scan", form, mine, op=op), ufunc.reduce(every[:me + 1]).astype(dtype), "scan")
    wanted = ufunc.reduce(every[:me]).astype(dtype) if me else np.zeros(count * n, dtype)
    same(run(world, "exscan", form, mine, op=op), wanted, "exscan")


def ops(world):
    n, me = world.size, world.rank
    every = np.stack([block(r, 8, "i4") for r in range(n)])
    for op, ufunc in [(coll.PROD, np.multiply), (coll.MIN, np.minimum), (coll.MAX, np.maximum),
                      (coll.LAND, np.logical_and), (coll.LOR, np.logical_or),
                      (coll.LXOR, np.logical_xor), (coll.BAND, np.bitwise_and),
                      (coll.BOR, np.bitwise_or), (coll.BXOR, np.bitwise_xor)]:
        wanted = ufunc.reduce(every) if n > 1 else every[0]
        same(world.allreduce(every[me], op=op), wanted, op.name)
        same(world.allreduce(every[me], op=int(op)), wanted, op.name)
    for value in ["i2", "i4", "i8", "f4", "f8"]:
        pairs = np.zeros(3, coll.pair(value))
        pairs["value"] = [me, -me, 7]
        pairs["index"] = me
        got = world.allreduce(pairs, op=coll.MAXLOC)
        same(got["value"], np.array([n - 1, 0, 7], value), "MAXLOC " + value)
        same(got["index"], [n - 1, 0, 0], "MAXLOC " + value)
        got = world.allreduce(pairs, op=coll.MINLOC)
        same(got["index"], [0, n - 1, 0], "MINLOC " + value)


def own_ops(world):
    n, me = world.size, world.rank
    context = world.context
    hypot = context.op(np.hypot)
    assert np.allclose(world.allreduce(np.full(3, 2.0), op=hypot), 2 * n ** 0.5)

    def right_of(left, right, out):
        out[:] = right
    last = context.op(right_of, commutative=False)
    same(world.allreduce(np.array([me, me + 1]), op=last), [n - 1, n], "an op that does not commute")
    record = np.zeros(2, np.dtype([("a", "i4"), ("b", "S3")]))
    record["a"] = me
    got = world.allreduce(record, op=last)      # opaque elements, of an own op
    same(got["a"], [n - 1, n - 1], "records")
    complex_sum = context.op(np.add)
    same(world.allreduce(np.array([1j * me]), op=complex_sum), [1j * sum(range(n))], "complex")


def buffers(world):
    """All that has a buffer; shapes; types that the buffer does not tell."""
    n, me = world.size, world.rank
    a = array.array("d", [me, 1])
    b = array.array("d", [0, 0])
    assert world.allreduce(a, b) is b and list(b) == [sum(range(n)), n]
    c = bytearray(n)
    assert world.allgather(bytes([me]), c) is c and list(c) == list(range(n))
    view = memoryview(bytearray(8)).cast("q")
    view[0] = 5
    world.bcast(view)
    assert view[0] == 5
    square = np.arange(6, dtype="f4").reshape(2, 3)
    got = world.allreduce(square)
    assert got.shape == (2, 3) and got.dtype == np.float32
    assert world.allgather(square).shape == (n, 2, 3)
    assert world.allreduce(np.float64(2)).shape == () and world.allreduce(np.float64(2)) == 2 * n
    assert world.allreduce(np.zeros(0)).size == 0
    same(world.bcast(np.array(["abc", "de"])), ["abc", "de"], "text")
    same(world.bcast(np.array([1, 2], ">i4")), [1, 2], "another byte order")
    same(world.allgather(np.longdouble(me)), np.arange(n, dtype=np.longdouble), "long double")
    one = np.array([0x3f80], "u2")              # 1.0 in bf16
    got = world.allreduce(one, type=coll.BF16)
    same(got.astype("u4").astype("u4") << 16 >> 16, (np.array([n], "f4").view("u4") >> 16), "bf16")
    raw = bytearray(np.full(2, 1.5).tobytes())
    world.allreduce(coll.IN_PLACE, raw, type=coll.DOUBLE)
    same(np.frombuffer(raw), [1.5 * n, 1.5 * n], "bytes as doubles")
    same(world.bcast(np.arange(6, dtype="u1"), type=coll.opaque(3)), np.arange(6), "opaque")
    if me == 0:                                 # the root's data may be read-only
        world.bcast(b"same")
    else:
        assert world.bcast(bytearray(4)) == b"same"


with coll.open() as context:
    world = context.world
    for form in ["blocking", "nonblocking", "persistent"]:
        for dtype in TYPES:
            moves(world, form, dtype, 5)
            reductions(world, form, dtype, 4)
        moves_of_counts(world, form, "f8")
        moves_of_counts(world, form, "i2")
        moves(world, form, "f4", 20000)
    ops(world)
    own_ops(world)
    buffers(world)
    counters = context.counters()
    assert counters["runs"] > 300 or world.size == 1, counters
    assert {"sealed_by_kernel", "memory_connections", "board_sends"} < set(counters), counters
assert context.closed and world.closed
