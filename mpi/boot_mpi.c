// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Joining the job through the MPI itself: what ranks put is exchanged in a fence,
 * and got from this rank's own memory. No server, no file, no address to configure.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libcoll/api/context.h"
#include "libcoll/boot/store_table.h"
#include "shim.h"

/* What was put since the last fence: entry, key and value, one after the other. */
struct entry {
	uint32_t key_bytes, value_bytes;
};

struct state {
	struct store_table table;
	bool *refused;
	uint8_t *news;
	int news_bytes;
};

static int mpi_put(struct coll_boot *boot, const char *key, const void *value, size_t bytes)
{
	struct state *state = boot->state;
	struct entry entry = { strlen(key), bytes };
	uint8_t *news, *at;

	if (!entry.key_bytes || entry.key_bytes > COLL_BOOT_KEY_MAX || bytes > COLL_BOOT_VALUE_MAX)
		return -EINVAL;
	news = realloc(state->news, state->news_bytes + sizeof(entry) + entry.key_bytes + bytes);
	if (!news)
		return -ENOMEM;
	at = news + state->news_bytes;
	memcpy(at, &entry, sizeof(entry));
	memcpy(at + sizeof(entry), key, entry.key_bytes);
	if (bytes)
		memcpy(at + sizeof(entry) + entry.key_bytes, value, bytes);
	state->news = news;
	state->news_bytes += sizeof(entry) + entry.key_bytes + bytes;
	return 0;
}

static int mpi_get(struct coll_boot *boot, const char *key, void *value, size_t *bytes,
		   uint64_t deadline)
{
	struct state *state = boot->state;
	const struct store_entry *entry = coll_store_table_find(&state->table, 0, key, strlen(key));
	size_t room = *bytes;

	(void)deadline;
	if (!entry)
		return -ETIMEDOUT;	/* no fence will bring it while we wait here */
	*bytes = entry->value_bytes;
	if (*bytes)
		memcpy(value, store_entry_value(entry), *bytes < room ? *bytes : room);
	return *bytes > room ? -EMSGSIZE : 0;
}

static int boot_mpi_learn(struct store_table *table, const uint8_t *all, size_t bytes)
{
	const uint8_t *at = all;
	struct entry entry;
	int error = 0;

	while (!error && at < all + bytes) {
		memcpy(&entry, at, sizeof(entry));
		at += sizeof(entry);
		error = coll_store_table_put(table, 0, at, entry.key_bytes, at + entry.key_bytes,
					     entry.value_bytes);
		at += entry.key_bytes + entry.value_bytes;
	}
	return error;
}

static int boot_mpi_exchange(struct state *state, int *counts, int *displs)
{
	uint8_t *all;
	int bytes = 0, error, i;

	if (real.Allgather(&state->news_bytes, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD))
		return -EIO;
	for (i = 0; i < shim.ranks; i++) {
		displs[i] = bytes;
		bytes += counts[i];
	}
	all = malloc(bytes + 1);
	if (!all)
		return -ENOMEM;
	if (real.Allgatherv(state->news, state->news_bytes, MPI_BYTE, all, counts, displs, MPI_BYTE,
			    MPI_COMM_WORLD))
		error = -EIO;
	else
		error = boot_mpi_learn(&state->table, all, bytes);
	free(all);
	return error;
}

static int mpi_fence(struct coll_boot *boot, uint64_t deadline)
{
	struct state *state = boot->state;
	int *counts = malloc(2 * shim.ranks * sizeof(*counts)), error = -ECONNRESET;

	(void)deadline;
	if (!shim_all(counts))
		*state->refused = true;
	else
		error = boot_mpi_exchange(state, counts, counts + shim.ranks);
	free(counts);
	free(state->news);
	state->news = NULL;
	state->news_bytes = 0;
	return error;
}

static void mpi_close(struct coll_boot *boot)
{
	struct state *state = boot->state;

	coll_store_table_free(&state->table);
	free(state->news);
	free(state);
	free(boot);
}

static const struct coll_boot_ops mpi_ops = {
	.name = "mpi",
	.put = mpi_put,
	.get = mpi_get,
	.fence = mpi_fence,
	.close = mpi_close,
};

static void find_locals(struct coll_boot *boot)
{
	MPI_Comm node;

	boot->local_rank = boot->local_ranks = -1;
	if (real.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, shim.rank, MPI_INFO_NULL,
				 &node))
		return;
	real.Comm_rank(node, &boot->local_rank);
	real.Comm_size(node, &boot->local_ranks);
	real.Comm_free(&node);
}

static struct coll_boot *boot_new(bool *refused)
{
	struct coll_boot *boot = calloc(1, sizeof(*boot));
	struct state *state = calloc(1, sizeof(*state));

	if (!boot || !state) {
		free(boot);
		free(state);
		return NULL;
	}
	state->refused = refused;
	boot->state = state;
	boot->ops = &mpi_ops;
	boot->rank = shim.rank;
	boot->ranks = shim.ranks;
	strcpy(boot->job, "mpi");
	strcpy(boot->from, "MPI_COMM_WORLD");
	return boot;
}

/* Rank 0's. A rank that has no memory says so in the next agreement. */
static void share_secret(uint8_t secret[COLL_SECRET_BYTES])
{
	if (!shim.rank && getrandom(secret, COLL_SECRET_BYTES, 0) != COLL_SECRET_BYTES)
		memset(secret, 0, COLL_SECRET_BYTES);
	real.Bcast(secret, COLL_SECRET_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/*
 * Each fence asks all ranks first whether they are still with us, and so do we at the
 * end: a rank that failed answers the next question, whichever that is, with no.
 */
int boot_mpi_open(const char *options, struct coll_context **context)
{
	uint8_t secret[COLL_SECRET_BYTES] = { 0 };
	bool refused = false;
	struct coll_boot *boot = boot_new(&refused), where;
	int error = -ENOMEM;

	share_secret(secret);
	find_locals(boot ? boot : &where);
	if (boot) {
		memcpy(boot->secret, secret, sizeof(secret));
		error = coll_context_open(options, boot, context);
	}
	if (error && !refused)
		fprintf(stderr, "libcollmpi: rank %d: %s; the MPI's own collectives are used\n",
			shim.rank, coll_context_error(NULL));
	if (refused || shim_all(!error))
		return error;
	coll_close(*context);
	*context = NULL;
	return error ? error : -ECONNRESET;
}
