# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""What a call from Python costs: allreduce blocking and persistent, beside C by coll bench."""
import statistics
import sys
import time

import coll
import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000


def median(call):
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times[ROUNDS // 10:]) / 1000


with coll.open() as context:
    world = context.world
    rows = []
    for size in [8, 1024, 65536, 1 << 20]:
        data, out = np.ones(size // 8), np.zeros(size // 8)
        blocking = median(lambda: world.allreduce(data, out))
        with world.allreduce_init(data, out) as request:
            persistent = median(lambda: request.start().wait())
        rows.append((size, blocking, persistent))
    if world.rank == 0:
        print("bytes  blocking us  persistent us")
        for size, blocking, persistent in rows:
            print(f"{size:7} {blocking:10.1f} {persistent:12.1f}")
