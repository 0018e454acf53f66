# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""usage: waiting.py [OPTION=VALUE] CASE...: by three ranks. Waits, threads, signals, and who keeps buffers alive."""
import gc
import os
import select
import signal
import sys
import threading
import time
import warnings
import weakref

import coll
import numpy as np


def interrupted_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


class Told:
    """Rank 0 tells the others by a signal: a message would be a run, and a helper's runs have one order."""

    def __init__(self, world):
        self.count, self.awaited = 0, 0
        signal.signal(signal.SIGUSR2, self.hear)
        self.others = [int(pid) for pid in world.allgather(np.full(1, os.getpid(), "i8")).flat][1:]

    def hear(self, *_):
        self.count += 1

    def tell(self):
        for pid in self.others:
            os.kill(pid, signal.SIGUSR2)

    def wait(self):
        self.awaited += 1
        until = time.monotonic() + 10
        while self.count < self.awaited:
            assert time.monotonic() < until, "not told"
            time.sleep(0.01)


def interrupt(context, world):
    """Ctrl-C ends a blocking call soon, on this rank and on the others; a wait it only leaves."""
    told = Told(world)
    part = world.dup()
    if world.rank == 0:
        timer = interrupted_after(0.3)
        began = time.monotonic()
        try:
            part.allreduce(np.ones(4))
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("not interrupted")
        assert time.monotonic() - began < 2, "it took long"
        timer.join()
        told.tell()
    else:
        if world.rank < world.size - 1: # without the last rank nobody's call ends
            try:
                part.allreduce(np.ones(4))
            except coll.RevokedError as error:
                assert error.rank == 0
            else:
                raise AssertionError("not cancelled")
        told.wait()
    if world.rank == 0:
        request = world.iallreduce(np.ones(4))
        timer = interrupted_after(0.2)
        try:
            request.wait()
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("not interrupted")
        assert request.active
        timer.join()
        told.tell()
    else:
        told.wait()
        request = world.iallreduce(np.ones(4))
    assert (request.wait() == world.size).all()


def handler(context, world):
    """A signal's handler runs during a wait, may call the library, and the wait goes on."""
    seen = []
    alone = world.split(world.rank)
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(float(alone.allreduce(np.ones(1))[0])))
    if world.rank == 1:
        time.sleep(0.5)
    else:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    assert world.allreduce(np.ones(1)) == world.size
    assert seen == ([] if world.rank == 1 else [1.0]), seen


def gil(context, world):
    """Other threads run while a call waits."""
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())
    thread = threading.Thread(target=tick)
    thread.start()
    if world.rank == 0:
        time.sleep(0.5)
    began = time.monotonic()
    world.barrier()
    waited = [t for t in ticks if t > began]
    stop.set()
    thread.join()
    if world.rank:
        assert len(waited) > 10, f"{len(waited)} ticks"


def buffers_live(context, world):
    """Buffers live as long as the library may touch them, whatever becomes of their names."""
    class Array(np.ndarray):
        pass
    n = world.size
    requests = []
    for i in range(50):
        data = np.full(10000, world.rank + i, "f8").view(Array)
        requests.append(world.iallreduce(data))
        alive = weakref.ref(data)
        del data
        gc.collect()
        assert alive() is not None
    coll.waitall(requests)
    for i, request in enumerate(requests):
        assert (request.result == sum(range(n)) + i * n).all()
    del requests, request
    gc.collect()
    assert alive() is None

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        part = world.dup()
        out = np.zeros(1000).view(Array)
        alive = weakref.ref(out)
        if world.rank == 0:
            part.iallreduce(np.ones(1000), out)     # dropped in flight: the others come later
            part.close()
            del part, out
            gc.collect()
            assert alive() is not None and said[0].category is ResourceWarning, said
            world.barrier()
        else:
            world.barrier()
            part.allreduce(np.ones(1000), out)
            assert (out == n).all()
    until = time.monotonic() + 5
    while world.rank == 0 and alive() is not None and time.monotonic() < until:
        context.progress()
    assert world.rank or alive() is None
    world.barrier()
    grow = bytearray(64)
    request = world.iallreduce(grow, bytearray(64))
    try:
        grow.extend(b"more")            # would move the memory
    except BufferError:
        pass
    else:
        raise AssertionError("a buffer in flight could be moved")
    request.wait()
    request.close()
    grow.extend(b"more")


def several(context, world):
    n, me = world.size, world.rank
    requests = [world.iallreduce(np.full(3, i)) for i in range(5)]
    left = dict(enumerate(requests))
    order = []
    while (index := coll.waitany(requests)) is not None:
        order.append(index)
    assert sorted(order) == list(range(5)), order
    assert coll.testany(requests) is None and coll.testall(requests)
    requests = [world.iallreduce(np.full(3, i)) for i in range(5)]
    while not coll.testall(requests):
        pass
    assert all(r.test() for r in requests)
    request = world.ibarrier()
    while not request.test():
        select.select([context], [], [], 1)
    persistent = [world.allreduce_init(np.ones(2)), world.bcast_init(np.ones(2))]
    for _ in range(3):
        for request in persistent:
            request.start()
        coll.waitall(persistent)
    assert "allreduce" in persistent[0].explain()
    persistent[0].set_deadline(5)
    assert coll.waitany([]) is None


def threads(context, world):
    """Two threads, each with a group of its own, all at once: the ranks' orders differ."""
    groups = [world.dup(), world.dup()]
    failed = []

    def work(group, rounds):
        try:
            for i in range(rounds):
                assert group.allreduce(np.full(100, i)).sum() == 100 * i * group.size
        except BaseException as error:
            failed.append(error)
    order = groups if world.rank % 2 else groups[::-1]
    threads = [threading.Thread(target=work, args=(group, 200)) for group in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    for group in groups:
        group.close()


def cancelled_meanwhile(context, world):
    """cancel() while another thread's wait ends the request: an error or none, and no crash."""
    def wait(request):
        try:
            request.wait()
        except coll.RevokedError:
            pass
    alone = world.split(world.rank)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        part = alone.dup()
        request = part.iallreduce(np.ones(1000))
        thread = threading.Thread(target=wait, args=(request,))
        thread.start()
        request.cancel()
        thread.join()
        assert coll.waitany([request]) is None
        part.close()


def other_thread(context, world):
    """A thread that may not call gets an exception, and nothing is changed."""
    said = []

    def work():
        try:
            world.barrier()
        except coll.ThreadError as error:
            said.append(str(error))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said and "threads=any" in said[0], said
    world.barrier()


def forked(context, world):
    """In a fork every call is refused; the parent is not hurt by its end."""
    request = world.ibarrier()
    for call in world.barrier, request.wait, request.test, lambda: coll.waitany([request]):
        child = os.fork()
        if not child:
            try:
                call()
            except RuntimeError as error:
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    request.wait()


def growth(context, world):
    """3,000 calls, and 30 groups, take no more memory than the first of them."""
    def pages():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])
    data, out = np.ones(64), np.zeros(64)

    def some():
        for _ in range(100):
            world.allreduce(data, out)
            world.iallgather(data).wait()
        for _ in range(2):
            with world.dup() as part:
                part.allreduce(data, op=context.op(np.add))
    for _ in range(5):
        some()
    gc.collect()
    before = pages()
    for _ in range(15):
        some()
    gc.collect()
    assert pages() - before < 256, f"{before} pages, then {pages()}"


options = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
with coll.open(deadline="20s", **options) as context:
    for case in sys.argv[1:]:
        if "=" not in case:
            globals()[case](context, context.world)
            context.world.barrier()
