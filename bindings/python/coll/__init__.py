# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Collective communication for clusters whose nodes are noisy, far apart, or joined by circuits.

    import coll
    import numpy

    with coll.open(deadline="10s") as context:
        world = context.world
        total = world.allreduce(numpy.arange(3.0) + world.rank)

Started by `coll run -n 4 -- python3 program.py`, mpirun, srun or torchrun.

Buffers are NumPy arrays, or anything else with the buffer protocol. Each collective is a method
of Group in three forms: allreduce() blocks, iallreduce() returns a Request, allreduce_init()
returns a persistent Request that start() starts. An error is an exception derived from
coll.Error, which carries the rank, the error number and the text.
"""
import atexit as _atexit
import enum as _enum

try:
    from . import _coll
except ImportError as _error:
    if "libcoll.so" not in str(_error):
        raise
    raise ImportError(f"coll: the library is not found ({_error}); install libcoll, or name its "
                      "folder in LD_LIBRARY_PATH") from _error
from ._coll import (Context, Group, Op, Request, testall, testany, waitall, waitany)
from .errors import (IN_PLACE, ArgumentError, DeadlineError, Error, MismatchError,
                     RankDiedError, ResourceError, RevokedError, ThreadError, TruncatedError,
                     UnsupportedError)
from .messages import ANY_SOURCE, ANY_TAG, Received


class Type(_enum.IntEnum):
    """Types of elements. Needed only where a buffer does not tell: bf16, pairs in raw bytes."""

    INT8 = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    UINT8 = 4
    UINT16 = 5
    UINT32 = 6
    UINT64 = 7
    FP16 = 8
    BF16 = 9
    FLOAT = 10
    DOUBLE = 11
    COMPLEX_FLOAT = 12
    COMPLEX_DOUBLE = 13
    INT16_INT32 = 14
    INT32_INT32 = 15
    INT64_INT32 = 16
    FLOAT_INT32 = 17
    DOUBLE_INT32 = 18


class ReduceOp(_enum.IntEnum):
    """Reductions. Context.op() makes others."""

    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    LAND = 4
    LOR = 5
    LXOR = 6
    BAND = 7
    BOR = 8
    BXOR = 9
    MINLOC = 10
    MAXLOC = 11


globals().update(Type.__members__)
globals().update(ReduceOp.__members__)

__version__ = _coll.version()


def open(**options):
    """Joins the job that the environment describes; without one, a job of one rank.

    Options are those of coll(7): open(deadline="10s", progress="thread"). They override
    COLL_<KEY> in the environment. Returns a Context, which leaves the job at the end of a with
    block, by close(), or at the end of the program.
    """
    words = []
    for key, value in options.items():
        word = f"{key}={value}"
        if len(word.split()) != 1:
            raise ValueError(f"open: {key}: {value!r} has a space; valid: coll(7)")
        words.append(word)
    return _coll.open(" ".join(words) or None)


def opaque(size):
    """The type of elements of `size` bytes that are moved as they are."""
    if not 1 <= size < 2 ** 30 - 1:
        raise ValueError(f"opaque: {size} bytes; valid: 1 to 2^30 - 2")
    return 0x40000000 + size


def pair(value):
    """The NumPy dtype of a value of this dtype and an int32 index, for MINLOC and MAXLOC."""
    import numpy
    dtype = numpy.dtype(value)
    if dtype.str[1:] not in ("i2", "i4", "i8", "f4", "f8") or not dtype.isnative:
        raise TypeError(f"pair: {dtype}; valid: int16, int32, int64, float32, float64")
    return numpy.dtype([("value", dtype), ("index", numpy.int32)], align=True)


_atexit.register(_coll.close_all)

__all__ = ["ANY_SOURCE", "ANY_TAG", "ArgumentError", "Context", "DeadlineError", "Error", "Group",
           "IN_PLACE", "MismatchError", "Op", "RankDiedError", "Received", "ReduceOp", "Request",
           "ResourceError", "RevokedError", "ThreadError", "TruncatedError", "Type",
           "UnsupportedError", "opaque", "open", "pair", "testall", "testany", "waitall", "waitany",
           *Type.__members__, *ReduceOp.__members__]
