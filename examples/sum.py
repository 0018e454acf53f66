# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Python, with nothing but ctypes: every rank gets the sum over all ranks."""
import ctypes

COLL_DOUBLE, COLL_SUM = 11, 0  # coll_types.h

coll = ctypes.CDLL("libcoll.so.0")
coll.coll_world.restype = ctypes.c_void_p
coll.coll_world.argtypes = [ctypes.c_void_p]
coll.coll_rank.argtypes = [ctypes.c_void_p]
coll.coll_close.argtypes = [ctypes.c_void_p]
coll.coll_context_error.restype = ctypes.c_char_p
coll.coll_last_error.restype = ctypes.c_char_p
coll.coll_last_error.argtypes = [ctypes.c_void_p]
coll.coll_allreduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                ctypes.c_int, ctypes.c_int, ctypes.c_void_p]

context = ctypes.c_void_p()
if coll.coll_open(b"deadline=10s", ctypes.byref(context)):
    raise SystemExit(coll.coll_context_error(None).decode())
world = coll.coll_world(context)

mine = (ctypes.c_double * 3)(*(coll.coll_rank(world) + i for i in range(3)))
total = (ctypes.c_double * 3)()
if coll.coll_allreduce(mine, total, 3, COLL_DOUBLE, COLL_SUM, world):
    raise SystemExit(coll.coll_last_error(world).decode())
print(f"rank {coll.coll_rank(world)}: {list(total)}\n", end="", flush=True)
coll.coll_close(context)
