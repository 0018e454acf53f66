// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Of one run: its timeline, its critical path, and the proof that its result is correct. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/names.h"
#include "tools/common/arena.h"
#include "sim.h"

/* ---- the log ---------------------------------------------------------------- */

static bool write_timeline(const struct sim_log *log, const char *path)
{
	FILE *to = fopen(path, "we");
	int error = to ? sim_log_trace(log, to) : -errno;

	if (to && fclose(to) && !error)
		error = -errno;
	if (error)
		fprintf(stderr, "coll sim: %s: %s\n", path, strerror(-error));
	return !error;
}

static void print_path(const struct sim_stage *stage, u32 count, FILE *to)
{
	sim_time work = 0, wire = 0, late = 0;
	u32 i;

	fprintf(to, "%14s %14s %14s  %s\n", "from us", "to us", "late us", "critical path");
	for (i = 0; i < count; i++) {
		const sim_time length = stage[i].end - stage[i].begin - stage[i].late;

		fprintf(to, "%14.6f %14.6f %14.6f  ", stage[i].begin / 1e6, stage[i].end / 1e6,
			stage[i].late / 1e6);
		if (stage[i].from == stage[i].rank)
			fprintf(to, "rank %u, op %u\n", stage[i].rank, stage[i].op);
		else
			fprintf(to, "message from rank %u to rank %u, op %u\n", stage[i].from,
				stage[i].rank, stage[i].op);
		*(stage[i].from == stage[i].rank ? &work : &wire) += length;
		late += stage[i].late;
	}
	fprintf(to, "CPU %g us, messages %g us, noise and congestion %g us\n\n", work / 1e6,
		wire / 1e6, late / 1e6);
}

bool sim_show_run(const struct sim_options *options, struct sim *sim,
		  const struct sim_model *model, u64 seed)
{
	struct sim_outcome outcome;
	struct sim_stage *stage;
	struct sim_log *log;
	u32 count;
	int error = sim_run_logged(sim, model, seed, &outcome, &log);
	bool fine = !error;

	if (!error && options->timeline)
		fine = write_timeline(log, options->timeline);
	if (!error && options->critical_path) {
		error = sim_log_path(log, &stage, &count);
		if (!error) {
			print_path(stage, count,
				   options->format == SIM_TABLE ? stdout : stderr);
			free(stage);
		}
	}
	if (error)
		fprintf(stderr, "coll sim: %s\n", strerror(-error));
	else
		sim_log_free(log);
	return fine && !error;
}

/* ---- the result -------------------------------------------------------------- */

enum { PROOF_BYTES_MAX = 1 << 30 };

/* Element `index` of a rank's input: small, so that all orders of summation are exact. */
static u32 details_input(u32 rank, u64 index)
{
	return (rank * 31u + index * 7u + 1) % 101;
}

static u32 sum_input(u32 first, u32 last, u64 index)
{
	u32 sum = 0, rank;

	for (rank = first; rank < last; rank++)
		sum += details_input(rank, index);
	return sum;
}

/* Element `index` of a rank's correct result; false: undefined. */
static bool details_expected(const struct coll_call *call, u32 rank, u64 index, u32 *value)
{
	const u64 n = call->count, block = n ? index / n : 0, inside = n ? index % n : 0;
	const bool root = rank == call->root;

	switch (call->collective) {
	case COLL_BCAST:
		*value = details_input(call->root, index);
		return true;
	case COLL_GATHER:
	case COLL_GATHERV:
		*value = details_input(block, inside);
		return root;
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		*value = details_input(block, inside);
		return true;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		*value = details_input(call->root, rank * n + index);
		return true;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		*value = details_input(block, rank * n + inside);
		return true;
	case COLL_REDUCE:
		*value = sum_input(0, call->ranks, index);
		return root;
	case COLL_ALLREDUCE:
		*value = sum_input(0, call->ranks, index);
		return true;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		*value = sum_input(0, call->ranks, rank * n + index);
		return true;
	case COLL_SCAN:
		*value = sum_input(0, rank + 1, index);
		return true;
	case COLL_EXSCAN:
		*value = sum_input(0, rank, index);
		return rank;
	default:
		return false;
	}
}

/* Elements of the larger of a rank's two buffers. */
static u64 buffer_elements(const struct coll_call *call)
{
	switch (call->collective) {
	case COLL_BARRIER:
		return 0;
	case COLL_BCAST:
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
	case COLL_SCAN:
	case COLL_EXSCAN:
		return call->count;
	default:
		return call->count * call->ranks;
	}
}

/* Elements of a rank's result. */
static u64 result_elements(const struct coll_call *call)
{
	switch (call->collective) {
	case COLL_SCATTER:
	case COLL_SCATTERV:
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		return call->count;
	default:
		return buffer_elements(call);
	}
}

static void details_put(const struct coll_call *call, void *buffer, u64 index, u32 value)
{
	if (call->element == sizeof(double))
		((double *)buffer)[index] = value;
	else
		((u8 *)buffer)[index] = value;
}

static bool details_has(const struct coll_call *call, const void *buffer, u64 index, u32 value)
{
	if (call->element == sizeof(double))
		return ((const double *)buffer)[index] == value;
	return ((const u8 *)buffer)[index] == (u8)value;
}

static bool check_results(const struct coll_call *call, void *const *out)
{
	const u64 count = result_elements(call);
	u32 rank, value;
	u64 i;

	for (rank = 0; rank < call->ranks; rank++)
		for (i = 0; i < count && details_expected(call, rank, i, &value); i++)
			if (!details_has(call, out[rank], i, value)) {
				fprintf(stderr,
					"coll sim: rank %u has a wrong result, element %llu\n",
					rank, (unsigned long long)i);
				return false;
			}
	return true;
}

bool sim_prove(const struct coll_call *call, struct sim *sim, const struct sim_model *model,
	       u64 seed)
{
	const u64 count = buffer_elements(call), bytes = count * call->element;
	struct sim_outcome outcome;
	char *memory;
	void **in, **out;
	u32 rank;
	u64 i;
	int error;

	if (bytes * call->ranks > PROOF_BYTES_MAX / 2) {
		fprintf(stderr, "coll sim: --prove: more than 1 GB of data\n");
		return false;
	}
	memory = memory_grow(NULL, call->ranks, 2 * bytes + 1);
	in = memory_grow(NULL, 2 * (size_t)call->ranks, sizeof(*in));
	out = in + call->ranks;
	for (rank = 0; rank < call->ranks; rank++) {
		in[rank] = memory + rank * 2 * bytes;
		out[rank] = memory + (rank * 2 + 1) * bytes;
		for (i = 0; i < count; i++) {
			details_put(call, in[rank], i, details_input(rank, i));
			details_put(call, out[rank], i, call->collective == COLL_BCAST &&
						rank == call->root ? details_input(rank, i) : 0);
		}
	}
	error = sim_run_bytes(sim, model, seed, (const void *const *)in, out, &outcome);
	if (error)
		fprintf(stderr, "coll sim: --prove: %s\n", strerror(-error));
	else if (!check_results(call, out))
		error = -EPROTO;
	free(memory);
	free(in);
	return !error;
}
