// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Collectives under way. Their requests are the MPI's own, made so that it treats
 * them as any other: a generalised one for a nonblocking collective, a persistent
 * receive of nothing from this rank itself for a persistent one, ended by a message.
 */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

enum {
	SLICE_FIRST_NS = 50000,
	SLICE_MAX_NS = 200000,
	POLLS = 16,		/* before the core is offered to others */
};

static struct task *running;		/* with requests; a blocking one is not among them */
static uint64_t tags;			/* used so far */

/* ---- launching ------------------------------------------------------------ */

static int task_launch(struct task *task, bool later)
{
	const struct call *call = &task->call;
	const struct stage *s = &task->stage;
	struct coll_group *group = task->group;
	struct coll_run **run = &task->run;
	const enum coll_type type = COLL_UINT8;
	const int root = call->root;

	shim.lingering = true;
#define LAUNCH(name, ...) \
	(later ? coll_##name##_init(__VA_ARGS__, run) : coll_i##name(__VA_ARGS__, run))
	switch (call->which) {
	case WHICH_Barrier:
		return LAUNCH(barrier, group);
	case WHICH_Bcast:
		return LAUNCH(bcast, s->out, s->count, type, root, group);
	case WHICH_Gather:
		return LAUNCH(gather, s->in, s->out, s->count, type, root, group);
	case WHICH_Gatherv:
		return LAUNCH(gatherv, s->in, s->count, s->out, s->counts, s->displs, type, root, group);
	case WHICH_Scatter:
		return LAUNCH(scatter, s->in, s->out, s->count, type, root, group);
	case WHICH_Scatterv:
		return LAUNCH(scatterv, s->in, s->counts, s->displs, s->out, s->count, type, root, group);
	case WHICH_Allgather:
		return LAUNCH(allgather, s->in, s->out, s->count, type, group);
	case WHICH_Allgatherv:
		return LAUNCH(allgatherv, s->in, s->count, s->out, s->counts, s->displs, type, group);
	case WHICH_Alltoall:
		return LAUNCH(alltoall, s->in, s->out, s->count, type, group);
	case WHICH_Alltoallv:
	case WHICH_Alltoallw:
		return LAUNCH(alltoallv, s->in, s->counts, s->displs, s->out, s->out_counts,
			      s->out_displs, type, group);
	case WHICH_Reduce:
		return LAUNCH(reduce, s->in, s->out, s->count, call->coll_type, call->coll_op, root, group);
	case WHICH_Allreduce:
		return LAUNCH(allreduce, s->in, s->out, s->count, call->coll_type, call->coll_op, group);
	case WHICH_Reduce_scatter:
		return LAUNCH(reduce_scatter, s->in, s->out, s->counts, call->coll_type, call->coll_op, group);
	case WHICH_Reduce_scatter_block:
		return LAUNCH(reduce_scatter_block, s->in, s->out, s->count, call->coll_type, call->coll_op, group);
	case WHICH_Scan:
		return LAUNCH(scan, s->in, s->out, s->count, call->coll_type, call->coll_op, group);
	case WHICH_Exscan:
		return LAUNCH(exscan, s->in, s->out, s->count, call->coll_type, call->coll_op, group);
	default:
		return -EINVAL;
	}
#undef LAUNCH
}

int task_refuse(const struct call *call, int error, const char *why)
{
	char what[64];

	snprintf(what, sizeof(what), "%s of %d ranks", which_names[call->which], call->met->ranks);
	return shim_fail(call->met->freed ? MPI_COMM_NULL : call->met->handle, what, error, why);
}

static int task_fail(const struct task *task, int error)
{
	return task_refuse(&task->call, error, coll_last_error(task->group));
}

static int task_fail_of_stage(const struct task *task)
{
	const struct stage *stage = &task->stage;
	char text[MPI_MAX_ERROR_STRING], why[MPI_MAX_ERROR_STRING + 64];
	int length;

	if (real.Error_string(stage->code, text, &length))
		snprintf(text, sizeof(text), "code %d", stage->code);
	snprintf(why, sizeof(why), "a buffer with gaps cannot be packed or unpacked: %s", text);
	if (stage->refused)
		snprintf(why, sizeof(why), "it sends itself %zu bytes and receives %zu of itself; valid: as many",
			 stage->sent, stage->received);
	return task_refuse(&task->call, -EINVAL, why);
}

/* The run has ended, and so has the task: notifies the MPI. */
static void task_conclude(struct task *task)
{
	const char *algo = coll_shim_algorithm(task->run);
	int error = coll_run_wait(&task->run);

	if (!error)
		pieces_unpack(&task->stage);
	if (error)
		task->code = task_fail(task, error);
	else if (task->stage.code)
		task->code = task_fail_of_stage(task);
	report_ours(task, algo, coll_shim_now() - task->started);
}

static void task_init(struct task *task, const struct call *call, enum form form)
{
	memset(task, 0, sizeof(*task));
	task->call = *call;
	task->form = form;
	task->comm = call->met;
	task->group = call->met->group;
	comm_hold(task->comm);
	task->started = coll_shim_now();
}

/* ---- waiting -------------------------------------------------------------- */

/*
 * The MPI's messages must not wait for ours. A probe for a message from any rank polls its
 * engine; on a probe for one from this rank itself MPICH does not look into the network.
 */
void task_poke(void)
{
	int flag;

	real.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, shim.all, &flag, MPI_STATUS_IGNORE);
}

/* Other threads may need the library while this one waits. */
static int turn_among_threads(struct pace *pace)
{
	int error;

	shim_lock();
	error = coll_shim_poll(shim.context, 0);
	shim_unlock();
	task_poke();
	if (pace->rounds++ < POLLS)
		sched_yield();
	else
		usleep(SLICE_FIRST_NS / 1000);
	return error;
}

int pace_turn(struct pace *pace)
{
	int error;

	if (shim.threads)
		return turn_among_threads(pace);
	if (pace->slice)
		task_poke();
	else
		pace->slice = SLICE_FIRST_NS;
	error = coll_shim_poll(shim.context, pace->slice);
	if (pace->slice < SLICE_MAX_NS && pace->rounds++ > POLLS)
		pace->slice = SLICE_MAX_NS;
	return error;
}

void pace_poll(struct pace *pace)
{
	shim_lock();
	coll_shim_poll(shim.context, 0);
	shim_unlock();
	if (!shim.yields && pace->rounds++ < POLLS)
		return;
	if (shim.threads)
		sched_yield();		/* others may be in the library */
	else
		coll_shim_offer_core(shim.context);
}

/* ---- blocking ------------------------------------------------------------- */

/*
 * A run may complete before its messages have left: to a rank that is not connected
 * yet, say. The MPI may block in what the program calls next, and we do not see all
 * of that, so the messages leave first.
 */
static void block_until_completed(const struct coll_run *run)
{
	const uint64_t since = coll_shim_now();
	struct pace pace = { 0 };

	shim_unlock();
	while (!coll_shim_completed(run) && !pace_turn(&pace))
		;
	shim_lock();
	coll_shim_waited(shim.context, since);
}

int task_block(const struct call *call)
{
	struct task task;
	int error;

	if (call->failed)
		return call->failed;
	shim_lock();
	task_init(&task, call, BLOCKING);
	error = stage_make(&task);
	if (!error) {
		pieces_pack(&task.stage);
		error = task_launch(&task, false);
		if (!error) {
			block_until_completed(task.run);
			task_conclude(&task);
		}
		stage_free(&task.stage);
	}
	if (error)
		task.code = task_fail(&task, error);
	comm_drop(task.comm);
	shim_unlock();
	return task.code;
}

int task_agree(struct comm *comm, const void *mine, void *all, size_t count, enum coll_type type,
	       enum coll_reduction op)
{
	struct coll_run *run = NULL;
	int error;

	shim_lock();
	shim.lingering = true;
	error = coll_iallreduce(mine, all, count, type, op, comm->group, &run);
	if (!error) {
		block_until_completed(run);
		error = coll_run_wait(&run);
	}
	shim_unlock();
	if (error == -ENOMEM)
		shim_no_memory();
	return error;
}

/* ---- requests ------------------------------------------------------------- */

static void task_clear(struct task *task)
{
	drop_handles(task);
	stage_free(&task->stage);
	comm_drop(task->comm);
}

static void list_remove(struct task **slot, const struct task *task)
{
	while (*slot && *slot != task)
		slot = &(*slot)->next;
	if (*slot)
		*slot = task->next;
}

/* An error is failure.c's. */
static int task_query(void *state, MPI_Status *status)
{
	(void)state;
	real.Status_set_elements(status, MPI_BYTE, 0);
	real.Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int task_release(void *state)
{
	free(state);
	return MPI_SUCCESS;
}

static int task_cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;	/* collectives are not cancelled */
}

/* ---- persistent requests -------------------------------------------------- */

/* Persistent tasks, until they are freed. While one runs it is in `running`, too. */
struct kept {
	struct kept *next;
	struct task task;
};

static struct kept *kept;

struct task *task_persistent(MPI_Request request)
{
	struct kept *one;

	for (one = kept; one; one = one->next)
		if (one->task.request == request && !one->task.freed)
			return &one->task;
	return NULL;
}

static void kept_free(struct task *task)
{
	struct kept **slot = &kept, *one;

	while (&(*slot)->task != task)
		slot = &(*slot)->next;
	one = *slot;
	*slot = one->next;
	coll_run_free(&task->run);
	task_clear(task);
	coll_group_free(task->group);
	free(task->event);
	free(one);
}

static bool tag_is_kept(int tag)
{
	const struct kept *one;

	for (one = kept; one; one = one->next)
		if (one->task.tag == tag)
			return true;
	return false;
}

/* No other persistent task has it: its message would complete that one's request. -ENOSPC: all are in use. */
static int kept_tag(void)
{
	enum { TAGS = 32768 };
	int tag, tries;

	for (tries = 0; tries < TAGS; tries++) {
		tag = tags++ % TAGS;
		if (tags <= TAGS || !tag_is_kept(tag))	/* at first none was used before */
			return tag;
	}
	return -ENOSPC;
}

static int task_prepare_request(struct task *task)
{
	int error = comm_own_group(task->comm, &task->group);

	if (error)
		return error;
	error = stage_make(task);
	if (error)
		goto err_free_group;
	error = task_launch(task, true);
	if (error)
		goto err_free_stage;
	task->tag = kept_tag();
	if (task->tag >= 0 && !real.Recv_init(NULL, 0, MPI_BYTE, 0, task->tag, shim.self, &task->request))
		return 0;
	error = task->tag < 0 ? task->tag : -ENOMEM;
	coll_run_free(&task->run);
err_free_stage:
	stage_free(&task->stage);
err_free_group:
	coll_group_free(task->group);
	task->group = task->comm->group;
	return error;
}

int task_prepare(const struct call *call, MPI_Request *request)
{
	struct kept *one = calloc(1, sizeof(*one));
	int error, code = MPI_SUCCESS;

	if (!one)
		return task_refuse(call, -ENOMEM, NULL);
	shim_lock();
	task_init(&one->task, call, PERSISTENT);
	error = task_prepare_request(&one->task);
	if (error) {
		code = task_fail(&one->task, error);
		comm_drop(one->task.comm);
		free(one);
	} else {
		hold_handles(&one->task);
		one->task.event = trace_prepared(call);
		one->next = kept;
		kept = one;
		*request = one->task.request;
	}
	shim_unlock();
	return code;
}

int task_start(struct task *task)
{
	int error, code;

	code = real.Start(&task->request);
	if (code)
		return code;	/* it is active */
	assert(task->form == PERSISTENT && !task->active);
	task->started = coll_shim_now();
	task->code = MPI_SUCCESS;
	pieces_pack(&task->stage);
	shim.lingering = true;
	error = coll_run_start(task->run);
	if (error) {	/* the request is inactive again, so a wait for it ends */
		real.Send(NULL, 0, MPI_BYTE, 0, task->tag, shim.self);
		real.Wait(&task->request, MPI_STATUS_IGNORE);
		return task_fail(task, error);
	}
	task->active = true;
	task->next = running;
	running = task;
	return MPI_SUCCESS;
}

bool task_free_persistent(struct task *task)
{
	task->freed = task->active;
	if (task->freed)
		return false;
	kept_free(task);
	return true;
}

/* ---- under way ------------------------------------------------------------ */

/* Messages of completed runs leave while the engine is polled. */
static bool any_lingering(void)
{
	bool any;

	shim_lock();
	any = coll_shim_busy(shim.context);
	shim.lingering = any;
	shim_unlock();
	return any;
}

bool task_any(void)
{
	return running || (shim.lingering && any_lingering());
}

static void task_finish(struct task *task)
{
	assert(task->form != PERSISTENT || task->active);
	list_remove(&running, task);
	task_conclude(task);
	if (task->code && !task->freed)
		failure_note(task->request, task->code);
	if (task->form == PERSISTENT) {
		task->active = false;
		real.Send(NULL, 0, MPI_BYTE, 0, task->tag, shim.self);
		if (task->freed) {
			real.Wait(&task->request, MPI_STATUS_IGNORE);
			real.Request_free(&task->request);
			kept_free(task);
		}
		return;
	}
	task_clear(task);
	real.Grequest_complete(task->request);	/* frees it, now or in a wait */
}

/* Completes what has ended, in whatever order. */
static void finish_ended(void)
{
	struct task *task, *next;

	for (task = running; task; task = next) {
		next = task->next;
		if (coll_shim_completed(task->run))
			task_finish(task);
	}
}

/* The engine works no more: libcoll ends the runs with the reason. */
static void finish_all(void)
{
	while (running)
		task_finish(running);
}

void task_progress(void)
{
	shim_lock();
	if (coll_shim_poll(shim.context, 0))
		finish_all();
	else
		finish_ended();
	shim_unlock();
}

const struct task *task_of(MPI_Request request)
{
	const struct task *task;

	for (task = running; task && (task->request != request || task->freed); task = task->next)
		;
	return task ? task : task_persistent(request);
}

bool task_all_ours(int count, const MPI_Request *requests)
{
	const struct task *task;
	bool all = true;
	int i;

	shim_lock();
	for (i = 0; all && i < count; i++) {
		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		for (task = running; task && task->request != requests[i]; task = task->next)
			;
		all = task;
	}
	shim_unlock();
	return all;
}

static int task_launch_staged(struct task *task)
{
	int error = stage_make(task);

	if (error)
		return error;
	pieces_pack(&task->stage);
	error = task_launch(task, false);
	if (!error)
		return 0;
	stage_free(&task->stage);
	return error;
}

int task_begin(const struct call *call, MPI_Request *request)
{
	struct task *task = malloc(sizeof(*task));
	int error, code;

	if (!task)
		return task_refuse(call, -ENOMEM, NULL);
	shim_lock();
	task_init(task, call, NONBLOCKING);
	error = task_launch_staged(task);
	if (error) {
		code = task_fail(task, error);
		comm_drop(task->comm);
		free(task);
	} else {
		hold_handles(task);
		task->next = running;
		running = task;
		code = real.Grequest_start(task_query, task_release, task_cancel, task, &task->request);
		*request = task->request;
	}
	shim_unlock();
	return code;
}

void task_end(void)
{
	finish_ended();
	while (kept)
		kept_free(&kept->task);
	shim.lingering = false;
}
