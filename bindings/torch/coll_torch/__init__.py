# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""torch.distributed over libcoll: the backend "coll" for tensors of the CPU.

    import coll_torch
    import torch.distributed as dist

    dist.init_process_group("coll")

Groups, collectives and messages are then those of torch.distributed. Options of libcoll are in
the environment: COLL_ALLREDUCE, COLL_EXPLAIN, ..., as coll(7) has them.
"""
import atexit as _atexit
import inspect as _inspect

import torch as _torch
from torch.distributed import Backend as _Backend

from . import _C


def _register():
    """Since torch 2.0 a backend says for which devices it is."""
    if "devices" in _inspect.signature(_Backend.register_backend).parameters:
        _Backend.register_backend("coll", _C.create, devices=["cpu"])
    else:
        _Backend.register_backend("coll", _C.create)


_register()
_atexit.register(_C.close_all)
