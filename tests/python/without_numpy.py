# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Without NumPy: buffers of the standard library, a reduction over memoryviews."""
import array
import sys

sys.modules["numpy"] = None     # importing it fails

import coll


def larger(left, right, out):
    for i in range(len(out)):
        out[i] = max(left[i], right[i])


with coll.open(deadline="20s") as context:
    world = context.world
    data, out = array.array("d", [world.rank, -world.rank]), array.array("d", [0, 0])
    assert list(world.allreduce(data, out)) == [sum(range(world.size)), -sum(range(world.size))]
    assert list(world.allreduce(data, out, context.op(larger))) == [world.size - 1, 0]
    everyone = bytearray(world.size)
    world.iallgather(bytes([world.rank]), everyone).wait()
    assert list(everyone) == list(range(world.size))
    try:
        world.allreduce(data)
    except TypeError as error:
        assert "recvbuf: it is missing, and there is no NumPy" in str(error), error
    else:
        raise AssertionError("not refused")
