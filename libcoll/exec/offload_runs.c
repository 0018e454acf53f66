// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Runs in the kernel: started there, and how they end. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "exec.h"
#include "live.h"
#include "failure.h"
#include "offload.h"
#include "offload_device.h"
#include "run.h"

enum { RETRY_NS = 200000 };		/* while a run waits for links to come back */

/* ---- ends of runs ------------------------------------------------------ */

static struct coll_device_word *word_of(const struct coll_run *run)
{
	return &coll_offload_of(run->group)->shared->word[run->word - 1];
}

static bool word_done(const struct coll_run *run)
{
	return __atomic_load_n(&word_of(run)->state, __ATOMIC_ACQUIRE) == COLL_DEVICE_DONE;
}

static void run_over(struct coll_run *run)
{
	const struct coll_device_word *word = word_of(run);
	struct coll_group *group = run->group;
	struct coll_offload *offload = coll_offload_of(group);
	struct coll_run **slot = &offload->runs;

	coll_assert(group->offload.running && offload->free_words < OFFLOAD_WORDS);
	while (*slot != run)
		slot = &(*slot)->next_offloaded;
	*slot = run->next_offloaded;
	offload->free_word[offload->free_words++] = run->word - 1;
	if (word->status)
		coll_offload_failed(group, word->status, word->failed_rank, word->reporter);
	run->status = word->status ? group->error : 0;
	run->word = 0;
	coll_live_end(group, run->flight, run->number, run->status);
	if (!run->status)
		coll_live_timed_end(group, run->timed, run->number);
	group->offload.running--;
	group->context->counters.runs++;
}

static void run_let_go(struct coll_run *run, int status)
{
	run->status = status;
	run->word = 0;
	run->waiting = false;
}

void coll_offload_let_go(struct coll_group *group)
{
	struct coll_offload *offload = coll_offload_of(group);	/* NULL: it was not opened */
	const int status = group->error ? group->error : -ECANCELED;
	struct coll_run **slot, *run;

	for (slot = offload ? &offload->runs : NULL; slot && (run = *slot);) {
		if (run->group != group) {
			slot = &run->next_offloaded;
			continue;
		}
		*slot = run->next_offloaded;
		offload->free_word[offload->free_words++] = run->word - 1;
		run_let_go(run, status);
	}
	for (run = group->offload.waiting; run; run = run->next_offloaded)
		run_let_go(run, status);
	group->offload.waiting = NULL;
	group->offload.running = 0;
}

bool coll_offload_in_flight(struct coll_run *run)
{
	if (run->word && word_done(run))
		run_over(run);
	return run->word || run->waiting;
}

struct coll_run *coll_offload_runs(const struct coll_context *context)
{
	return context->offload ? context->offload->runs : NULL;
}

bool coll_offload_needs_link(const struct coll_link *link)
{
	const struct coll_run *run;

	if (!link->group->offload.running)
		return false;
	for (run = coll_offload_of(link->group)->runs; run; run = run->next_offloaded)
		if (run->group == link->group &&
		    coll_peer_find(run->planned->schedule, link->rank) != COLL_NONE)
			return true;
	return false;
}

void coll_offload_deadline(const struct coll_run *run, uint64_t deadline)
{
	struct coll_device_deadline asked = {
		.group = run->group->offload.number,
		.number = run->number,
		.deadline = deadline,
	};

	if (run->word)
		coll_offload_command(coll_offload_of(run->group), COLL_DEVICE_DEADLINE, &asked,
				     sizeof(asked));
}

/* ---- starting ---------------------------------------------------------- */

static int offload_load(struct coll_planned *planned)
{
	struct coll_device_load asked = {
		.group = planned->group->offload.number,
		.hash = planned->hash,
		.schedule = (uintptr_t)planned->schedule,
		.bytes = planned->schedule->bytes,
		.fused = (uintptr_t)planned->fused,
	};
	long number;

	if (planned->loaded)
		return 0;
	number = coll_offload_command(coll_offload_of(planned->group), COLL_DEVICE_LOAD, &asked,
				      sizeof(asked));
	if (number < 0)
		return number;
	coll_offload_loaded(planned, number);
	return 0;
}

static int run_in_kernel(struct coll_run *run)
{
	struct coll_group *group = run->group;
	struct coll_offload *offload = coll_offload_of(group);
	const uint32_t word = offload->free_word[offload->free_words - 1];
	struct coll_device_run asked = {
		.schedule = run->planned->loaded - 1,
		.number = group->next_run,
		.word = word,
		.flags = COLL_DEVICE_QUIET,
		.in = { .address = (uintptr_t)run->in, .buffer = COLL_NONE },
		.out = { .address = (uintptr_t)run->out, .buffer = COLL_NONE },
		.deadline = run->until,
	};
	int error = coll_offload_command(offload, COLL_DEVICE_RUN, &asked, sizeof(asked));

	if (error)
		return error;
	offload->free_words--;
	run->word = word + 1;
	run->number = group->next_run++;
	group->recent[run->number % RECENT_RUNS] = run->planned->hash;
	run->flight = coll_live_begin(group, run->planned, run->number, coll_now(), run->until,
				      COLL_FLIGHT_KERNEL);
	run->timed = run->local ? coll_live_timed(group, run->planned, run->number, coll_now()) : 0;
	run->next_offloaded = offload->runs;
	offload->runs = run;
	group->offload.running++;
	return 0;
}

/* Why this run can never be in the kernel, or NULL. */
static const char *offload_unfit(const struct coll_run *run)
{
	if (run->planned->call.reduction == COLL_USER_REDUCTION)
		return "the application's own reduction runs in user space";
	if (!run->group->context->to_kernel)
		return "progress auto chose otherwise";
	if (run->group->context->inject)
		return "faults are injected in user space";
	if (run->group->context->circuits)
		return "circuits are requested in user space";
	if (run->group->clusters > 1 && run->group->context->streams > 1)
		return "links with streams are kept in user space";
	if (run->group->offload.gone)
		return "the kernel's part of the group has ended";
	return NULL;
}

/* Starts it in the kernel: NULL, or why not. */
static const char *try_kernel(struct coll_run *run)
{
	struct coll_group *group = run->group;
	const char *reason = offload_unfit(run);
	int error;

	if (!reason && group->offload.partly)
		reason = "not all of its links could be attached to /dev/coll";
	if (!reason && !group->offload.attached)
		reason = coll_offload_attach_all(group);
	if (reason || group->state != GROUP_OK)
		return reason;
	error = offload_load(run->planned);
	if (!error) {
		coll_exec_open_links(run->planned, NULL);
		error = group->state == GROUP_OK ? run_in_kernel(run) : 0;
	}
	if (error)
		coll_offload_hear(group);	/* it may be the group's failure */
	return error && group->state == GROUP_OK ? strerror(-error) : NULL;
}

/* 0: it has started; -EBUSY: not yet; else it has failed. */
static int try_start(struct coll_run *run)
{
	struct coll_group *group = run->group;
	const char *reason;

	if (group->state != GROUP_OK)
		return group->error;
	if (!coll_offload_of(group)->free_words)
		return -EBUSY;
	reason = try_kernel(run);
	if (group->state != GROUP_OK)
		return group->error;
	if (reason && group->offload.attached && coll_offload_detach(group))
		return -EBUSY;
	if (group->state != GROUP_OK)	/* news that came with the links */
		return group->error;
	if (reason != run->planned->aside)
		run->planned->explained = false;
	run->planned->aside = reason;
	return reason ? coll_exec_start(run, run->until) : 0;
}

int coll_offload_start(struct coll_run *run, uint64_t deadline)
{
	struct coll_group *group = run->group;
	int error;

	run->until = deadline;
	error = group->offload.waiting ? -EBUSY : try_start(run);
	if (error != -EBUSY)
		return error;
	run->waiting = true;
	run->next_offloaded = NULL;
	if (!group->offload.waiting)
		group->offload.waiting_end = &group->offload.waiting;
	*group->offload.waiting_end = run;
	group->offload.waiting_end = &run->next_offloaded;
	group->context->offload_again = coll_now() + RETRY_NS;
	return 0;
}

static bool start_waiting(struct coll_group *group)
{
	struct coll_run *run;
	bool any = false;
	int error;

	while ((run = group->offload.waiting)) {
		struct coll_run *next = run->next_offloaded;

		error = coll_now() >= run->until ? -ETIMEDOUT : try_start(run);
		if (error == -EBUSY)
			break;
		if (error == -ETIMEDOUT && group->state == GROUP_OK)
			coll_group_fail(group, error, group->rank, COLL_NONE,
					"an earlier run did not end before the deadline");
		else if (error)
			coll_group_lacks_run(run, error);
		group->offload.waiting = next;
		run->waiting = false;
		run->status = error;
		any = true;
	}
	return any;
}

/* ---- polling ----------------------------------------------------------- */

static bool end_and_start(struct coll_context *context, bool *waiting)
{
	struct coll_offload *offload = context->offload;
	struct coll_run *run, *next;
	struct coll_group *group;
	bool any = false;

	/* First: the end of a later run makes the file readable. */
	offload->shared->seen = __atomic_load_n(&offload->shared->ended, __ATOMIC_ACQUIRE);
	coll_offload_hear_all(context);
	for (run = offload->runs; run; run = next) {
		next = run->next_offloaded;
		if (!word_done(run))
			continue;
		run_over(run);
		any = true;
	}
	for (group = context->groups; group; group = group->next) {
		if (group->offload.waiting)
			any |= start_waiting(group);
		*waiting |= group->offload.waiting != NULL;
	}
	return any;
}

void coll_offload_arm(struct coll_context *context)
{
	struct coll_offload *offload = context->offload;

	if (offload->runs && !offload->watch.armed)
		coll_engine_watch(&context->engine, &offload->watch, POLLIN);
}

/* The retry is needed: the last message leaving the kernel wakes no thread. */
uint64_t coll_offload_poll(struct coll_context *context, uint64_t deadline)
{
	bool waiting = false, any = end_and_start(context, &waiting);

	context->offload_again = waiting ? coll_now() + RETRY_NS : 0;
	if (any || !deadline)
		return 0;
	coll_offload_arm(context);
	return deadline;
}
