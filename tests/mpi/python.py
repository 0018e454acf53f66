# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
from mpi4py import MPI
import ctypes
c = MPI.COMM_WORLD
s = c.allreduce(c.rank, op=MPI.SUM)
assert s == c.size * (c.size - 1) // 2
d = c.bcast({"a": [1, 2, 3]} if c.rank == 0 else None, root=0)
assert d == {"a": [1, 2, 3]}
g = c.gather(c.rank ** 2, root=0)
assert c.rank or g == [i * i for i in range(c.size)]
b = bytearray(b"%4d" % c.rank)
r = c.Ibarrier(); r.Wait()
sub = c.Split(c.rank % 2, c.rank)
assert sub.allreduce(1) == sub.size
sub.Free()
if c.rank == 0: print("mpi4py is right", MPI.Query_thread() == MPI.THREAD_MULTIPLE)
