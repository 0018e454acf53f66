# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""The arrays that coll makes. NumPy is needed for these only."""


def result(sendbuf, shape, ranks):
    """A new array for what a collective makes of sendbuf."""
    try:
        import numpy
    except ImportError:
        raise TypeError("recvbuf: it is missing, and there is no NumPy to make one; valid: "
                        "a buffer") from None
    send = numpy.asarray(sendbuf)
    if shape == "same":
        return numpy.empty(send.shape, send.dtype)
    if shape == "zeros":
        return numpy.zeros(send.shape, send.dtype)
    if shape == "gathered":
        return numpy.empty((ranks,) + send.shape, send.dtype)
    if send.ndim and send.shape[0] % ranks == 0:
        return numpy.empty((send.shape[0] // ranks,) + send.shape[1:], send.dtype)
    return numpy.empty(send.size // ranks, send.dtype)


def array_over(memory, dtype):
    """An array over bytes, for a reduction; without NumPy a memoryview of the same elements."""
    try:
        import numpy
    except ImportError:
        codes = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
                 "u8": "Q", "f4": "f", "f8": "d"}
        return memoryview(memory).cast(codes.get(dtype, "B"))
    return numpy.frombuffer(memory, dtype)
