# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""What an operation says when a rank has died, stops, or does not come, or when a store is at fault."""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import coll_torch
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


def closes():
    """Groups with messages to a rank that takes none: they close in the time of one, and the messages name it."""
    other = dist.new_group(timeout=datetime.timedelta(seconds=60))
    dist.barrier()
    dist.barrier(other)
    if me == n - 1:
        time.sleep(20)
        os._exit(0)
    works = [dist.isend(torch.ones(1 << 20), n - 1, group=group) for group in (None, other)]
    began = time.monotonic()
    del other
    dist.destroy_process_group()
    for work in works:
        refused(Failure, f"send on rank {me} of {n}: .*rank {n - 1}\\b", work.wait)
    assert time.monotonic() - began < 16


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


class Slow(dist.Store):
    """An answer takes 20 ms; a wait for less ends before it. In a fault every call fails."""

    def __init__(self, store):
        super().__init__()
        self.store, self.fault = store, False

    def answer(self, function, *args, time_limit=1):
        time.sleep(min(0.02, time_limit))
        if time_limit < 0.02:
            raise RuntimeError("timeout")
        if self.fault:
            raise RuntimeError("the store is at fault")
        return function(*args)

    def set(self, key, value):
        return self.answer(self.store.set, key, value)

    def get(self, key):
        return self.answer(self.store.get, key)

    def add(self, key, number):
        return self.answer(self.store.add, key, number)

    def is_there(self, keys):
        try:
            self.store.wait(keys, datetime.timedelta(milliseconds=1))
            return True
        except RuntimeError:
            return False

    def check(self, keys):              # torch 1.13's own have none in Python
        return self.answer(self.is_there, keys)

    def wait(self, keys, limit):
        return self.answer(self.store.wait, keys, limit, time_limit=limit.total_seconds())


def stores():
    """A slow store, groups one after the other by the same store, and a store that is at fault."""
    store = Slow(dist.FileStore(os.environ["COLL_TEST_STORE"] + "-slow", n))
    for _ in range(3):
        group = coll_torch._C.create(store, me, n, datetime.timedelta(seconds=20))
        tensor = torch.ones(3)
        group.allreduce([tensor]).wait()
        same(tensor, torch.full((3,), float(n)), "by a slow store")
        group.monitored_barrier()
        del group
    group = coll_torch._C.create(store, me, n, datetime.timedelta(seconds=20))
    group.allreduce([torch.ones(3)]).wait()
    store.fault = True
    refused(RuntimeError, "the store is at fault", group.monitored_barrier)


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
