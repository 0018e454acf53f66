# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Exceptions of coll, and IN_PLACE: what the extension module needs to be there before it."""
import builtins
import errno as _errno


class Error(Exception):
    """An error of libcoll.

    errno   the positive error number, for example errno.ECONNRESET
    rank    the rank of the group that it names, or None
    failed  the ranks of the group that are known to have failed
    text    what failed, where and why, in words
    call    the method that failed
    """

    def __init__(self, errno, call, text, rank=None, failed=()):
        super().__init__(errno, text)
        self.errno = errno
        self.call = call
        self.text = text
        self.rank = rank
        self.failed = tuple(failed)

    def __str__(self):
        return self.text

    def __reduce__(self):
        return type(self), (self.errno, self.call, self.text, self.rank, self.failed)


class RankDiedError(Error, ConnectionError):
    """A rank died, or its connection was lost (ECONNRESET)."""


class DeadlineError(Error, builtins.TimeoutError):
    """A rank did not answer before the deadline (ETIMEDOUT)."""


class MismatchError(Error):
    """The ranks' calls or arguments do not match (EPROTO)."""


class RevokedError(Error):
    """A rank called revoke() or cancel() (ECANCELED)."""


class ArgumentError(Error, ValueError):
    """An argument is out of range (EINVAL)."""


class UnsupportedError(Error, NotImplementedError):
    """The requested algorithm does not support this call (EOPNOTSUPP)."""


class ThreadError(Error):
    """Another thread must make this call (EPERM)."""


class TruncatedError(Error, ValueError):
    """A message is longer than recvbuf, or has no whole number of elements (EMSGSIZE).

    It is lost; the group goes on.
    """


class ResourceError(Error):
    """Memory, locked memory or descriptors ran out (ENOMEM, EMFILE, ENFILE)."""


_CLASSES = {
    _errno.ECONNRESET: RankDiedError,
    _errno.ETIMEDOUT: DeadlineError,
    _errno.EPROTO: MismatchError,
    _errno.ECANCELED: RevokedError,
    _errno.EINVAL: ArgumentError,
    _errno.EOPNOTSUPP: UnsupportedError,
    _errno.EPERM: ThreadError,
    _errno.EMSGSIZE: TruncatedError,
    _errno.ENOMEM: ResourceError,
    _errno.EMFILE: ResourceError,
    _errno.ENFILE: ResourceError,
}


def error_of(number, call, name, text, rank, failed):
    """The exception for an error number of the library. A rank below 0 is none."""
    words = text or f"{call}: {name}"
    if not words.startswith((call, name)):
        words = f"{call}: {words}"
    return _CLASSES.get(number, Error)(number, call, words, rank if rank >= 0 else None, failed)


class _InPlace:
    """The input is in the output buffer."""

    __slots__ = ()

    def __repr__(self):
        return "coll.IN_PLACE"

    def __reduce__(self):
        return "IN_PLACE"


IN_PLACE = _InPlace()
