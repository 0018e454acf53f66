# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""One rank of a test that `coll run` or torchrun starts: it joins, and what it is refused is checked."""
import datetime
import os
import re

import torch
import torch.distributed as dist

import coll_torch


def join(seconds=60):
    """The default group, over a file of the test where there is no torchrun."""
    torch.set_num_threads(1)
    where = {}
    if "COLL_TEST_STORE" in os.environ:
        where = dict(init_method="file://" + os.environ["COLL_TEST_STORE"],
                     rank=int(os.environ["COLL_RANK"]), world_size=int(os.environ["COLL_RANKS"]))
    dist.init_process_group("coll", timeout=datetime.timedelta(seconds=seconds), **where)
    return dist.get_rank(), dist.get_world_size()


def refused(kind, pattern, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert re.search(pattern, str(error)), f"{error!r} is not like {pattern!r}"
        return
    raise AssertionError(f"not refused: {pattern}")


def same(got, wanted, what):
    assert got.dtype == wanted.dtype and torch.equal(got, wanted), f"{what}: {got}, wanted {wanted}"
