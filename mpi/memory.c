// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Memory of MPI_Alloc_mem: that of libcoll's which ranks of a node map, as long as there is some. What
 * asks for more than bytes (an info), for few, or in vain here is the MPI's. What a program has not freed
 * when it calls MPI_Finalize stays: callbacks of MPI_COMM_SELF's attributes may still use and free it.
 */
#include "shim.h"

enum { OURS_LEAST = 16 << 10 };		/* shorter messages are always copied */

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *base)
{
	void *memory = NULL;

	if (!shim.on || info != MPI_INFO_NULL || !base || size < OURS_LEAST)
		return real.Alloc_mem(size, info, base);
	shim_lock();
	memory = coll_shim_alloc(shim.context, size);
	shim_unlock();
	if (!memory)
		return real.Alloc_mem(size, info, base);
	*(void **)base = memory;
	return MPI_SUCCESS;
}
ALSO(PMPI_Alloc_mem, MPI_Alloc_mem)

int MPI_Free_mem(void *base)
{
	bool ours;

	if (!base)
		return real.Free_mem(base);
	shim_lock();
	ours = shim.on ? coll_shim_free(shim.context, base) : coll_shim_free_left(shim.left, base);
	shim_unlock();
	return ours ? MPI_SUCCESS : real.Free_mem(base);
}
ALSO(PMPI_Free_mem, MPI_Free_mem)
