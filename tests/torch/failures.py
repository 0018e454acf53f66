# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""What an operation says when a rank has died, stops, or does not come. CASE: dies, stops, absent, leaves."""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

from group import join, refused, same

Failure = getattr(dist, "DistBackendError", RuntimeError)


def dies():
    """The last rank is killed: the others name it, in all that is in flight and later."""
    if me == n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(3)]
    for work in works:
        refused(Failure, f"all_?reduce on rank {me} of {n}: .*rank {n - 1}\\b", work.wait)
        assert work.is_completed() and not work.is_success()
    try:
        works[0].get_future().wait()
    except Exception as error:
        assert f"rank {n - 1}" in str(error), error
    else:
        raise AssertionError("the future ended well")
    refused(Failure, f"rank {n - 1}\\b", dist.barrier)


def stops():
    """A rank that sleeps is named at the deadline of the operation, which is the group's."""
    if me == n - 1:
        time.sleep(8)
        os._exit(0)
    began = time.monotonic()
    refused(Failure, f"rank {n - 1}\\b", dist.all_reduce, torch.ones(3))
    assert 1.5 < time.monotonic() - began < 20


def deadline():
    """wait() with a time of its own gives up waiting, and the operation goes on."""
    if me == n - 1:
        time.sleep(1)
    work = dist.all_reduce(torch.ones(3), async_op=True)
    if me != n - 1:
        refused(RuntimeError, "timed out|timeout", work.wait, datetime.timedelta(milliseconds=100))
        assert not work.is_completed()
    work.wait()


def monitored():
    """A barrier of its own time names the rank that does not come, or all of them; the group works on."""
    barrier = dist.distributed_c10d._get_default_group().monitored_barrier
    for _ in range(3):
        barrier()
    if me == n - 1:
        time.sleep(3)
    else:
        refused(Failure, f"Rank {n - 1} failed to pass monitoredBarrier in 1000 ms", barrier,
                datetime.timedelta(seconds=1))
        if not me:
            refused(Failure, f"Ranks 1, {n - 1} failed to pass monitoredBarrier in 100 ms", barrier,
                    datetime.timedelta(milliseconds=100), True)
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    same(tensor, torch.full((3,), float(n)), "after the barrier")


case = sys.argv[1]
if case == "absent" and os.environ["COLL_RANK"] == "1":
    os._exit(0)
try:
    me, n = join(2 if case in ("stops", "absent") else 30)
except Exception as error:
    assert case == "absent" and "rank" in str(error), error
else:
    globals()[case]()
print("good", flush=True)
os._exit(0)     # as one whose group has failed may
