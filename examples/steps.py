# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Python, with the module coll and NumPy: steps of an iteration, until a rank dies."""
import os
import time

import coll
import numpy as np

DIES_AT = 5


def step(group, number, values):
    """The next values: each rank's own work beside the exchange of the last values."""
    request = group.iallgather(values)
    own = number * (group.rank + 1)             # while the library sends and receives
    return request.wait().sum(axis=0) / group.size + own


with coll.open(deadline="10s") as context:
    group = context.world
    last = group.size - 1
    values = np.zeros(4)
    for number in range(2 * DIES_AT):
        if number == DIES_AT and context.world.size > 1 and context.world.rank == last:
            time.sleep(0.2)                     # what it has sent may need to leave
            os._exit(0)
        try:
            values = step(group, number, values)
        except coll.RankDiedError as error:
            print(f"step {number}: lost rank {error.rank}\n", end="", flush=True)
            group = group.shrink()
            values = step(group, number, values)
    total = group.allreduce(values.sum())
    print(f"rank {group.rank} of {group.size}: total {total:g}\n", end="", flush=True)
