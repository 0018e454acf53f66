// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The trace of this rank, which the simulator replays: computing, messages, collectives
 * and waits, in their order and with their times. One file a rank; coll-trace(5) has the
 * format. An MPI call inside another is not recorded.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

struct pending {
	struct pending *next;
	MPI_Request handle;
	uint64_t number;
};

enum { BUCKETS = 1024 };

static FILE *file;
static struct pending *pending[BUCKETS];
static uint64_t numbered;		/* requests so far */
static int groups;			/* likewise */
static int keyval = MPI_KEYVAL_INVALID;
static _Thread_local int depth;
static _Thread_local uint64_t began, ended;

/* ---- groups ------------------------------------------------------------------ */

static int trace_forget(MPI_Comm handle, int key, void *value, void *extra)
{
	(void)handle, (void)key, (void)extra;
	free(value);
	return MPI_SUCCESS;
}

static void write_members(MPI_Comm handle, int number)
{
	MPI_Group group = MPI_GROUP_NULL;
	int ranks = 0, i, *mine, *world;

	real.Comm_size(handle, &ranks);
	real.Comm_group(handle, &group);
	mine = malloc((2 * ranks + 1) * sizeof(*mine));
	world = mine + ranks;
	for (i = 0; mine && i < ranks; i++)
		mine[i] = i;
	if (mine && !real.Group_translate_ranks(group, ranks, mine, shim.world, world)) {
		const struct comm *comm = comm_find(handle);

		fprintf(file, "group number=%d", number);
		if (comm && comm->id)
			fprintf(file, " id=%llu", (unsigned long long)comm->id);
		fprintf(file, " ranks=");
		for (i = 0; i < ranks; i++)	/* -1: of another job */
			fprintf(file, "%s%d", i ? "," : "",
				world[i] == MPI_UNDEFINED ? -1 : world[i]);
		fputc('\n', file);
	}
	if (group != MPI_GROUP_NULL)
		real.Group_free(&group);
	free(mine);
}

/* A communicator gets its number at its first event. */
static int group_of(MPI_Comm handle)
{
	int *number, found = 0;

	if (handle == MPI_COMM_NULL || real.Comm_get_attr(handle, keyval, &number, &found))
		return -1;
	if (found)
		return *number;
	number = malloc(sizeof(*number));
	if (!number)
		return -1;
	*number = groups++;
	write_members(handle, *number);
	real.Comm_set_attr(handle, keyval, number);
	return *number;
}

/* ---- requests ---------------------------------------------------------------- */

static struct pending **pending_find(MPI_Request handle)
{
	uint64_t bits = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15ull;
	struct pending **slot = &pending[bits >> 54];

	while (*slot && (*slot)->handle != handle)
		slot = &(*slot)->next;
	return slot;
}

static uint64_t request_new(MPI_Request handle)
{
	struct pending **slot = pending_find(handle);

	if (!*slot)
		*slot = calloc(1, sizeof(**slot));
	if (!*slot)
		return 0;
	(*slot)->handle = handle;
	return (*slot)->number = ++numbered;
}

/* 0: not a request of ours. */
static uint64_t request_done(MPI_Request handle)
{
	struct pending **slot = pending_find(handle), *one = *slot;
	uint64_t number = one ? one->number : 0;

	if (one) {
		*slot = one->next;
		free(one);
	}
	return number;
}

/* ---- events ------------------------------------------------------------------ */

bool trace_begin(void)
{
	if (!file || depth++)
		return false;
	began = coll_shim_now();
	return true;
}

/* Ends an event and writes the computing before it. False: the event is not recorded. */
static bool trace_finish(int code)
{
	if (!file || --depth)
		return false;
	shim_lock();
	if (ended && began > ended)	/* not of a thread whose first event this is */
		fprintf(file, "cpu ns=%llu\n", (unsigned long long)(began - ended));
	return !code;
}

/* Completes the line with the time that the event took. */
static void end_line(void)
{
	const uint64_t now = coll_shim_now();

	fprintf(file, " ns=%llu\n", (unsigned long long)(now - began));
}

/* Computing begins again here: the time of writing does not count. */
static void go_on(void)
{
	if (!depth)
		ended = coll_shim_now();
	shim_unlock();
}

void trace_nothing(void)
{
	if (file)
		depth--;	/* its time counts as computing */
}

static MPI_Count bytes_of(MPI_Count count, MPI_Datatype type)
{
	const struct type *info = count > 0 ? type_find(type) : NULL;

	return info ? count * info->size : 0;
}

struct message {
	const char *what, *side;	/* "send", "to" */
	int group, peer, tag;
	MPI_Count count;
	MPI_Datatype type;
};

static void write_message(const struct message *message, const MPI_Request *request)
{
	fprintf(file, "%s group=%d %s=%d tag=%d bytes=%lld", message->what, message->group, message->side,
		message->peer == MPI_ANY_SOURCE ? -1 : message->peer == MPI_PROC_NULL ? -2 : message->peer,
		message->tag == MPI_ANY_TAG ? -1 : message->tag,
		(long long)bytes_of(message->count, message->type));
	if (request)
		fprintf(file, " request=%llu", (unsigned long long)request_new(*request));
	end_line();
}

void trace_message(const char *what, const char *side, int peer, int tag, MPI_Count count,
		   MPI_Datatype type, MPI_Comm comm, const MPI_Request *request, int code)
{
	if (!file)
		return;
	if (trace_finish(code))
		write_message(&(struct message){ what, side, group_of(comm), peer, tag, count, type }, request);
	if (!depth)
		go_on();
}

/* ---- matched probes ---------------------------------------------------------- */

/* A message that was probed for, and is to be received by its handle. */
struct matched {
	struct matched *next;
	MPI_Message handle;
	int group, from, tag;
};

static struct matched *matched;

void trace_probed(int code)
{
	if (!file)
		return;
	trace_finish(code);
	if (!depth)
		go_on();
}

void trace_matched(MPI_Message handle, int from, int tag, MPI_Comm comm)
{
	struct matched *one = file ? malloc(sizeof(*one)) : NULL;

	if (!one)
		return;
	shim_lock();
	*one = (struct matched){ matched, handle, group_of(comm), from, tag };
	matched = one;
	shim_unlock();
}

static struct matched *matched_take(MPI_Message handle)
{
	struct matched **slot = &matched, *one;

	while ((one = *slot) && one->handle != handle)
		slot = &one->next;
	if (one)
		*slot = one->next;
	return one;
}

void trace_received(const char *what, MPI_Message handle, MPI_Count count, MPI_Datatype type,
		    const MPI_Request *request, int code)
{
	struct matched *one;

	if (!file)
		return;
	if (trace_finish(code)) {
		one = matched_take(handle);
		if (one)
			write_message(&(struct message){ what, "from", one->group, one->from, one->tag, count, type },
				      request);
		free(one);
	}
	if (!depth)
		go_on();
}

/* ---- waits ------------------------------------------------------------------- */

/* A persistent request keeps its handle when it is done. */
static bool is_done(MPI_Request before, MPI_Request after)
{
	const struct task *task;

	if (before == MPI_REQUEST_NULL || before != after)
		return before != MPI_REQUEST_NULL;
	task = task_persistent(before);
	return task && !task->active;
}

void trace_wait(int count, const MPI_Request *before, const MPI_Request *after, int code)
{
	const char *comma = "";
	int i;

	if (!file)
		return;
	if (trace_finish(code)) {
		for (i = 0; before && i < count; i++) {
			uint64_t number = is_done(before[i], after[i]) ? request_done(before[i]) :
									 0;

			if (!number)
				continue;
			fprintf(file, "%s%llu", *comma ? comma : "wait requests=",
				(unsigned long long)number);
			comma = ",";
		}
		if (*comma)
			end_line();
	}
	if (!depth)
		go_on();
}

/* ---- collectives --------------------------------------------------------------- */

static void write_list(FILE *to, const struct call *call, const char *name, const void *counts,
		       MPI_Datatype type, const MPI_Datatype *types, int ranks)
{
	int i;

	fprintf(to, " %s=", name);
	for (i = 0; i < ranks; i++)
		fprintf(to, "%s%lld", i ? "," : "",
			(long long)bytes_of(count_at(call, counts, i), types ? types[i] : type));
}

static MPI_Count block_bytes(const struct call *call, bool root)
{
	bool in = call->which == WHICH_Gather || call->which == WHICH_Gatherv;

	if (call->which == WHICH_Scatter && root)
		in = true;
	if (call->which == WHICH_Gather && root)
		in = false;
	return in ? bytes_of(call->in_count, call->in_type) :
		    bytes_of(call->out_count, call->out_type);
}

static void write_sizes(FILE *to, const struct call *call)
{
	int ranks = 0, rank = 0;
	bool root, lists = call->in_counts || call->out_counts;

	real.Comm_size(call->comm, &ranks);
	real.Comm_rank(call->comm, &rank);
	root = call->root == rank;
	if (call->which == WHICH_Gatherv || call->which == WHICH_Scatterv)
		lists = root;
	if (!lists) {
		fprintf(to, " bytes=%lld", (long long)block_bytes(call, root));
		return;
	}
	if (call->in_counts && call->in != MPI_IN_PLACE)
		write_list(to, call, "send", call->in_counts, call->in_type, call->in_types, ranks);
	if (call->out_counts)
		write_list(to, call, "recv", call->out_counts, call->out_type, call->out_types, ranks);
}

static void write_reduction(FILE *to, const struct call *call)
{
	const struct type *info = type_find(call->out_type);
	int commutative = 1;

	if (call->op != MPI_OP_NULL)
		real.Op_commutative(call->op, &commutative);
	fprintf(to, " element=%lld commutative=%d", (long long)(info ? info->size : 0),
		commutative);
}

static bool has_root(enum which which)
{
	return which == WHICH_Bcast || which == WHICH_Gather || which == WHICH_Gatherv ||
	       which == WHICH_Scatter || which == WHICH_Scatterv || which == WHICH_Reduce;
}

static void write_collective(FILE *to, const struct call *call, enum form form)
{
	fprintf(to, "%s%s group=%d", form == BLOCKING ? "" : "i", which_names[call->which], group_of(call->comm));
	if (has_root(call->which))
		fprintf(to, " root=%d", call->root);
	if (call->which != WHICH_Barrier)
		write_sizes(to, call);
	if (call->which >= WHICH_Reduce)
		write_reduction(to, call);
}

static void end_collective(const MPI_Request *request)
{
	if (request)
		fprintf(file, " request=%llu", (unsigned long long)request_new(*request));
	end_line();
}

void trace_collective(const struct call *call, enum form form, const MPI_Request *request,
		      int code)
{
	if (!file)
		return;
	/* A persistent collective is recorded when it is started. */
	if (trace_finish(code) && form != PERSISTENT) {
		write_collective(file, call, form);
		end_collective(request);
	}
	if (!depth)
		go_on();
}

char *trace_prepared(const struct call *call)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = file ? open_memstream(&text, &bytes) : NULL;

	if (!to)
		return NULL;
	write_collective(to, call, PERSISTENT);
	fclose(to);
	return text;
}

void trace_started(const char *prepared, MPI_Request request, int code)
{
	if (!file)
		return;
	if (trace_finish(code) && prepared) {
		fputs(prepared, file);
		end_collective(&request);
	}
	if (!depth)
		go_on();
}

/* ---- start and end ------------------------------------------------------------- */

void trace_start(void)
{
	const char *prefix = getenv("COLL_MPI_TRACE");
	char name[512];

	snprintf(name, sizeof(name), "%s.%d", prefix && *prefix && strcmp(prefix, "1") ? prefix :
		 "coll-trace", shim.rank);
	file = fopen(name, "w");
	if (!file || real.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, trace_forget, &keyval, NULL)) {
		fprintf(stderr, "libcollmpi: rank %d: cannot write the trace %s: %s\n", shim.rank,
			name, strerror(errno));
		file = NULL;
		return;
	}
	fprintf(file, "coll-trace version=1 rank=%d ranks=%d\n", shim.rank, shim.ranks);
	ended = coll_shim_now();
}

void trace_end(void)
{
	if (!file)
		return;
	fprintf(file, "end\n");
	fclose(file);
	file = NULL;
}
