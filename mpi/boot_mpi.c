// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Joining the job through the MPI itself: its allgather carries the addresses of all
 * ranks. No server, no file, no address to configure.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

static int gather_all(const void *mine, int bytes, int *counts, int *displs, void **all,
		      size_t *all_bytes)
{
	int total = 0, i;

	if (real.Allgather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD))
		return -EIO;
	for (i = 0; i < shim.ranks; i++) {
		displs[i] = total;
		total += counts[i];
	}
	*all = malloc(total + 1);
	if (!*all)
		return -ENOMEM;
	*all_bytes = total;
	return real.Allgatherv(mine, bytes, MPI_BYTE, *all, counts, displs, MPI_BYTE,
			       MPI_COMM_WORLD) ? -EIO : 0;
}

/* Asks first whether every rank is still joining: one that failed answers no. */
static int boot_exchange(void *argument, const void *mine, size_t bytes, void **all,
			 size_t *all_bytes)
{
	int *counts = malloc(2 * shim.ranks * sizeof(*counts)), error = -ECONNRESET;
	bool *refused = argument;

	if (!shim_all(counts))
		*refused = true;
	else
		error = gather_all(mine, bytes, counts, counts + shim.ranks, all, all_bytes);
	free(counts);
	return error;
}

static void find_locals(struct coll_shim_job *job)
{
	job->local_rank = job->local_ranks = -1;
	if (real.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, shim.rank, MPI_INFO_NULL,
				 &shim.node))
		return;
	real.Comm_rank(shim.node, &job->local_rank);
	real.Comm_size(shim.node, &job->local_ranks);
}

enum secret_from { SECRET_NONE, SECRET_MADE, SECRET_SET };

/* Rank 0's own COLL_SECRET, or random bytes. */
static enum secret_from secret_begin(int set, uint8_t secret[COLL_SHIM_SECRET_BYTES], char *why,
				     size_t why_bytes)
{
	if (set > 0)
		return SECRET_SET;
	if (!set && coll_shim_make_secret(secret))
		return SECRET_MADE;
	if (!set)
		snprintf(why, why_bytes, "the kernel gives no random bytes for the job's secret");
	return SECRET_NONE;
}

/*
 * Rank 0's, of random bytes; nothing of it where COLL_SECRET is set. Without one on all ranks, or
 * if this rank differs from rank 0, `why` says so on this rank.
 */
static enum secret_from share_secret(struct coll_shim_job *job, char *why, size_t why_bytes)
{
	struct { uint8_t from, secret[COLL_SHIM_SECRET_BYTES]; } shared = { SECRET_NONE };
	const int set = coll_shim_secret(job->secret, why, why_bytes);

	if (!shim.rank)
		shared.from = secret_begin(set, shared.secret, why, why_bytes);
	if (real.Bcast(&shared, sizeof(shared), MPI_BYTE, 0, MPI_COMM_WORLD))
		return SECRET_NONE;
	if (shared.from == SECRET_MADE)
		memcpy(job->secret, shared.secret, COLL_SHIM_SECRET_BYTES);
	if (shared.from != SECRET_NONE && set >= 0 && set != (shared.from == SECRET_SET))
		snprintf(why, why_bytes, "COLL_SECRET is set on rank %d and not on rank %d: valid on "
			 "all ranks or on none", set ? shim.rank : 0, set ? 0 : shim.rank);
	job->secret_carried = shared.from == SECRET_MADE && job->local_ranks != job->ranks;
	return shared.from;
}

static void boot_complain(const char *why)
{
	fprintf(stderr, "libcollmpi: rank %d: %s; the MPI's own collectives are used\n", shim.rank, why);
}

/*
 * Each exchange asks all ranks first whether they are still joining, and so does the end
 * of this function: a rank that failed answers the next question, whichever that is,
 * with no.
 */
int boot_mpi_open(const char *options, struct coll_context **context)
{
	bool refused = false;
	struct coll_shim_job job = {
		.rank = shim.rank,
		.ranks = shim.ranks,
		.exchange = boot_exchange,
		.argument = &refused,
	};
	char why[200] = "";
	enum secret_from from;
	int error;

	find_locals(&job);
	from = share_secret(&job, why, sizeof(why));
	if (*why)
		boot_complain(why);
	if (from == SECRET_NONE)
		return -EIO;
	if (*why) {
		shim_all(false);
		return -EINVAL;
	}
	error = coll_shim_open(options, &job, context);
	if (error && !refused)
		boot_complain(coll_context_error(NULL));
	if (refused || shim_all(!error))
		return error;
	coll_close(*context);
	*context = NULL;
	return error ? error : -ECONNRESET;
}
