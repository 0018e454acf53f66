// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The calls of peer.c by an MPI. */
#include <mpi.h>

enum { PEER_BYTES_MAX = BLOCKS_MAX };

static void peer_open(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void peer_close(void)
{
	MPI_Finalize();
}

static void *peer_alloc(long bytes)
{
	void *memory;

	return MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory) ? NULL : memory;
}

static void peer_barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void peer_bcast(void *data, int count)
{
	MPI_Bcast(data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void peer_allreduce(void *in, void *out, int count)
{
	MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void peer_reduce(void *in, void *out, int count)
{
	MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void peer_reduce_scatter(void *in, void *out, int count)
{
	MPI_Reduce_scatter_block(in, out, count / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void peer_allgather(void *in, void *out, int count)
{
	MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void peer_gather(void *in, void *out, int count)
{
	MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void peer_scatter(void *in, void *out, int count)
{
	MPI_Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void peer_alltoall(void *in, void *out, int count)
{
	MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}

/*
 * The largest of each sample, at rank 0. In pieces of 4 KB: above that, coll/xhc of Open MPI 6.0.0rc2 reads an address
 * of 0 where there is no XPMEM.
 */
static void peer_slowest(double *mine, double *slowest, int count)
{
	enum { PIECE = 4096 / sizeof(double) };

	for (int from = 0; from < count; from += PIECE)
		MPI_Reduce(mine + from, slowest + from, count - from < PIECE ? count - from : PIECE, MPI_DOUBLE,
			   MPI_MAX, 0, MPI_COMM_WORLD);
}

static void peer_tell(double *value)
{
	MPI_Bcast(value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
