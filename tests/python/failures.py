# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""usage: failures.py CASE...: by four ranks. What becomes of a call when a rank fails."""
import errno
import os
import sys
import time
import warnings

import coll
import numpy as np


def fails(kind, number, rank, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except coll.Error as error:
        assert type(error) is kind, repr(error)
        assert error.errno == number and error.rank == rank, vars(error)
        assert f"rank {rank}" in error.text and str(error) == error.text, error.text
        return error
    raise AssertionError("it did not fail")


def dies(context, world):
    """All survivors name the dead rank, and go on without it."""
    if world.rank == 2:
        os._exit(0)
    error = fails(coll.RankDiedError, errno.ECONNRESET, 2, world.allreduce, np.ones(4))
    assert isinstance(error, ConnectionError) and error.failed == (2,), error.failed
    assert world.failed_ranks() == [2] and "rank 2" in world.last_error
    fails(coll.RankDiedError, errno.ECONNRESET, 2,
          lambda: world.iallreduce(np.ones(4)).wait())
    assert world.agree(0b111 if world.rank else 0b101) == 0b101
    with world.shrink() as living:
        assert living.size == 3
        assert living.allreduce(np.ones(1)) == 3


def stops(context, world):
    """A stopped rank is named before the deadline."""
    world.set(deadline="2s")
    world.barrier()
    if world.rank == 1:
        time.sleep(5)
        return
    began = time.monotonic()
    error = fails(coll.DeadlineError, errno.ETIMEDOUT, 1, world.barrier)
    assert isinstance(error, TimeoutError)
    assert 1 < time.monotonic() - began < 4.5


def mismatch(context, world):
    world.barrier()     # who has the error and leaves is reached by who is told of it later
    if world.rank == 3:
        call = world.allreduce, np.ones(5)
    else:
        call = world.allreduce, np.ones(4)
    try:
        world.barrier()     # all have come past the one above; news may reach a rank that is in this one
        call[0](*call[1:])
    except coll.MismatchError as error:
        assert error.errno == errno.EPROTO and error.rank is not None
        assert f"rank {error.rank}" in error.text
    else:
        raise AssertionError("it did not fail")


def revoked(context, world):
    """One rank gives up, the calls of the others end; the world works on."""
    part = world.dup()
    if world.rank == 0:
        time.sleep(0.2)
        part.revoke()
    fails(coll.RevokedError, errno.ECANCELED, 0, part.barrier)
    assert world.allreduce(np.ones(1)) == 4
    part.close()
    part = world.dup()
    if world.rank == 3:
        request = part.ibarrier()
        request.cancel()
        fails(coll.RevokedError, errno.ECANCELED, 3, request.wait)
    elif world.rank != 1:
        fails(coll.RevokedError, errno.ECANCELED, 3, part.barrier)
    world.barrier()                     # before, a barrier without rank 1 is not over
    if world.rank == 1:                 # all the others have entered: its first call may still be served
        fails(coll.RevokedError, errno.ECANCELED, 3, lambda: (part.barrier(), part.barrier()))


def reduction_raises(context, world):
    """An exception of the reduction comes out of the call, and fails it on all ranks."""
    class Mine(Exception):
        pass

    def broken(left, right, out):
        raise Mine("no")

    def calls(left, right, out):
        world.barrier()
    for function, kind in [(broken, Mine), (calls, RuntimeError)]:
        part = world.dup()
        op = context.op(function)
        raised = None
        for _ in range(2):              # a rank that did not reduce may hear of it later
            try:
                part.allreduce(np.ones(4), op=op)
            except (kind, coll.RevokedError) as error:
                raised = raised or error
        assert raised, "it did not fail"
        if isinstance(raised, RuntimeError):
            assert "must not call the library" in str(raised)
        raised = [world.allreduce(np.array([isinstance(raised, kind)]), op=coll.LOR)]
        assert raised[0], "no rank has the exception"


class Raised(Exception):
    pass


def raises(left, right, out):
    raise Raised("no")


def reduction_of_another_group(context, world):
    """An exception of a reduction is of its own call, whichever call waits, and of its own group."""
    told = []
    sys.unraisablehook = lambda what: told.append(what.exc_type)
    part = world.dup()
    broken = part.iallreduce(np.ones(4), op=context.op(raises))
    assert (world.iallreduce(np.ones(4)).wait() == 4).all()
    seen = None
    for wait in broken.wait, part.barrier:
        try:
            wait()
        except (Raised, coll.RevokedError) as error:
            seen = seen or type(error)
    assert seen, "it did not fail"
    assert world.allreduce(np.array([seen is Raised]), op=coll.LOR)[0], "no rank has the exception"

    op = context.op(raises)             # once more with an Op that has raised, and nobody waits
    for _ in range(2):
        part = world.dup()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            part.iallreduce(np.ones(4), op=op)
        until = time.monotonic() + 10
        while not world.allreduce(np.array([Raised in told]), op=coll.LOR)[0]:
            assert time.monotonic() < until, "the exception was lost"
            time.sleep(0.01)
        told.clear()
        world.barrier()


def reduction_of_a_closed_group(context, world):
    """A group that is closed while a call is in flight is revoked all the same."""
    part = world.dup()
    part.set(allreduce="ring")
    op = context.op(raises if world.rank == 0 else np.add)
    request = part.iallreduce(np.ones(4), op=op)
    if world.rank == 0:
        part.close()
        try:
            request.wait()
        except Raised:
            world.barrier()
            return
        raise AssertionError("it did not raise")
    try:
        request.wait()                  # it may hear later
    except coll.RevokedError:
        pass
    fails(coll.RevokedError, errno.ECANCELED, 0, part.barrier)      # rank 0 does not come
    world.barrier()


with coll.open(deadline="20s") as context:
    for case in sys.argv[1:]:
        globals()[case](context, context.world)
