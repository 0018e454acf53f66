// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "cause.h"
#include "late.h"
#include "libcoll/base/clock.h"
#include "wait_graph.h"

enum {
	ARRIVES_NS = 100000000,		/* what a rank sent in the call that it has just left */
	ALONE_NS = 1000000000,		/* a rank that nobody waits for is a word worth then */
};

const char *const coll_flight_why_names[COLL_FLIGHT_WHYS] = {
	[COLL_FLIGHT_NO_CAUSE] = "none",
	[COLL_FLIGHT_DIED] = "died",
	[COLL_FLIGHT_STOPPED] = "stopped",
	[COLL_FLIGHT_HELD] = "held",
	[COLL_FLIGHT_IN_KERNEL] = "in-kernel",
	[COLL_FLIGHT_NO_CPU] = "no-cpu",
	[COLL_FLIGHT_MISMATCH] = "mismatch",
	[COLL_FLIGHT_IN_FUNCTION] = "in-function",
	[COLL_FLIGHT_MANAGER] = "manager",
	[COLL_FLIGHT_OUTSIDE] = "outside",
	[COLL_FLIGHT_NO_PROGRESS] = "no-progress",
	[COLL_FLIGHT_DEADLOCK] = "deadlock",
	[COLL_FLIGHT_LOST_PATH] = "lost-path",
	[COLL_FLIGHT_FULL_QUEUE] = "full-queue",
	[COLL_FLIGHT_JOINING] = "joining",
	[COLL_FLIGHT_ELSEWHERE] = "elsewhere",
	[COLL_FLIGHT_IN_FLIGHT] = "in-flight",
	[COLL_FLIGHT_SLOW] = "slow",
};

/* ---- words --------------------------------------------------------------------------- */

static const char *collective_name(const struct coll_flight_seen *seen,
				   const struct coll_flight_run *run)
{
	const uint32_t collective = seen->page.call[run->call].collective;

	return collective < COLL_CALLS ? coll_collective_names[collective] : "?";
}

static bool is_message(const struct coll_flight_seen *seen, const struct coll_flight_run *run)
{
	return seen->page.call[run->call].collective >= COLL_COLLECTIVES;
}

static const char *group_text(uint64_t id, char *text, size_t bytes)
{
	if (id == 1)
		snprintf(text, bytes, "world");
	else
		snprintf(text, bytes, "group %llx", (unsigned long long)id);
	return text;
}

const char *coll_flight_run_text(const struct coll_flight_seen *seen,
				 const struct coll_flight_run *run, char *text, size_t bytes)
{
	const char *algo = seen->page.call[run->call].algo;
	char group[32];

	snprintf(text, bytes, "%s%s%s%s no. %u of %s", collective_name(seen, run), *algo ? " (" : "",
		 algo, *algo ? ")" : "", run->number + 1,
		 group_text(seen->page.group[run->group].id, group, sizeof(group)));
	return text;
}

static double cause_seconds(const struct coll_flight_seen *seen, uint64_t since)
{
	return seen->time > since ? (seen->time - since) / 1e9 : 0;
}

static void cause_say(struct coll_flight_cause *cause, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void cause_say(struct coll_flight_cause *cause, const char *format, ...)
{
	const size_t length = strlen(cause->text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(cause->text + length, sizeof(cause->text) - length, format, arguments);
	va_end(arguments);
}

/* A cause that is nearer to the root replaces another: the order of enum coll_flight_why. */
static bool cause_counts(const struct coll_flight_cause *cause, enum coll_flight_why why)
{
	return !cause->why || why < cause->why;
}

static bool cause_take(struct coll_flight_cause *cause, enum coll_flight_why why, uint32_t rank)
{
	if (!cause_counts(cause, why))
		return false;
	cause->why = why;
	cause->rank = rank;
	cause->text[0] = 0;
	cause_say(cause, "rank %u: ", rank);
	return true;
}

/* ---- what keeps a process that others wait for ----------------------------------------- */

static bool is_held(uint8_t state)
{
	return state == 't';
}

/* Sleeping for a moment is usual: it counts when nothing moved between two looks. */
static bool sleeps_in_kernel(const struct coll_flight_seen *seen)
{
	return (seen->state == 'D' && seen->flags & COLL_FLIGHT_STEADY) ||
	       (seen->owner_state == 'D' && seen->flags & COLL_FLIGHT_OWNER_STEADY);
}

/* Its time is known in ns: a thread that is ready wakes and runs, unless others hold its CPU. */
static bool kernel_thread_starves(const struct coll_flight_seen *seen)
{
	return seen->owner_state == 'R' && seen->flags & COLL_FLIGHT_KERNEL_THREAD &&
	       seen->flags & COLL_FLIGHT_OWNER_STEADY;
}

static const char *wchan_of(const struct coll_flight_seen *seen)
{
	const char *wchan = seen->owner_state == 'D' ? seen->owner_wchan : seen->wchan;

	return *wchan ? wchan : "an unknown place";
}

static void say_no_cpu(const struct coll_flight_seen *seen, struct coll_flight_cause *cause)
{
	cause_say(cause, "its kernel thread coll/%u is ready, and gets no time on %s", seen->pid,
		  *seen->owner_wchan ? seen->owner_wchan : "its CPU");
	if (*seen->tracer_name)
		cause_say(cause, ": %s (pid %u) has it, in real time", seen->tracer_name, seen->tracer);
}

/* Whether the process itself is the cause. */
static bool process_is_cause(const struct coll_flight_seen *seen, struct coll_flight_cause *cause)
{
	const uint32_t rank = seen->page.rank;

	if (seen->flags & COLL_FLIGHT_ENDED || seen->state == 'Z' || seen->state == 'X') {
		if (cause_take(cause, COLL_FLIGHT_DIED, rank))
			cause_say(cause, "its process has ended%s", seen->flags & COLL_FLIGHT_ENDED ?
					", and a child of it goes on" : "");
		return true;
	}
	if (is_held(seen->state) || is_held(seen->owner_state)) {
		if (cause_take(cause, COLL_FLIGHT_HELD, rank))
			cause_say(cause, "its %s is held by a debugger (%s, pid %u)",
				  is_held(seen->state) ? "process" : "progress thread",
				  *seen->tracer_name ? seen->tracer_name : "?", seen->tracer);
		return true;
	}
	if (seen->state == 'T' || seen->owner_state == 'T') {
		if (cause_take(cause, COLL_FLIGHT_STOPPED, rank))
			cause_say(cause, "stopped (SIGSTOP); pid %u on %s goes on after kill -CONT",
				  seen->pid, seen->page.host);
		return true;
	}
	if (sleeps_in_kernel(seen)) {
		if (cause_take(cause, COLL_FLIGHT_IN_KERNEL, rank))
			cause_say(cause, "in state D (uninterruptible) at %s", wchan_of(seen));
		return true;
	}
	if (kernel_thread_starves(seen)) {
		if (cause_take(cause, COLL_FLIGHT_NO_CPU, rank))
			say_no_cpu(seen, cause);
		return true;
	}
	if (coll_flight_in_function(seen)) {
		if (cause_take(cause, COLL_FLIGHT_IN_FUNCTION, rank))
			cause_say(cause, "in the application's own reduction function for %.1f s",
				  cause_seconds(seen, seen->page.now));
		return true;
	}
	return false;
}

static void say_place(const struct coll_flight_seen *seen, struct coll_flight_cause *cause,
		      uint64_t since)
{
	cause_say(cause, "%s outside of the library for %.1f s",
		  seen->state == 'R' ? "computing" : "asleep", cause_seconds(seen, since));
	if (seen->state != 'R' && *seen->wchan)
		cause_say(cause, " (at %s)", seen->wchan);
}

/* In memory that both ranks have nobody else sees what is unread: then the sender's queue tells. */
static void say_unread(const struct coll_flight_edge *edge, const struct coll_flight_seen *seen,
		       struct coll_flight_cause *cause)
{
	const struct coll_flight_page *from = &edge->seen->page;
	uint32_t i;

	if (seen->unread)
		cause_say(cause, "; %s%llu bytes for it wait unread",
			  edge->wait.kind == COLL_OP_SEND ? "its receive queue is full: " : "",
			  (unsigned long long)seen->unread);
	for (i = 0; i < from->links && edge->wait.kind == COLL_OP_SEND; i++)
		if (from->link[i].peer == seen->page.rank && from->link[i].queued) {
			cause_say(cause, "; rank %u cannot send it a message of %llu bytes",
				  from->rank, (unsigned long long)from->link[i].queued);
			break;
		}
}

/* ---- an edge ------------------------------------------------------------------------------ */

/* The rank that is waited for has not called yet, and is in no call at all. */
static bool peer_is_outside(const struct coll_flight_edge *edge,
			    const struct coll_flight_seen *peer, enum wait_graph_run has,
			    struct coll_flight_cause *cause)
{
	const bool by_call = !strcmp(peer->page.progress, "call");
	char group[32];
	uint64_t since;

	if (!peer->page.joined) {
		if (cause_take(cause, COLL_FLIGHT_JOINING, peer->page.rank))
			cause_say(cause, "it still joins the job, for %.1f s",
				  cause_seconds(peer, peer->page.opened));
		return true;
	}
	if (coll_flight_inside(peer, &since))
		return false;
	if (has == RUN_NOT_BEGUN) {
		if (!cause_take(cause, COLL_FLIGHT_OUTSIDE, peer->page.rank))
			return true;
		say_place(peer, cause, since);
		if (is_message(edge->seen, edge->run))
			cause_say(cause, ": it has not called %s, which rank %u's %s waits for",
				  edge->wait.kind == COLL_OP_RECV ? "send" : "recv",
				  edge->seen->page.rank, collective_name(edge->seen, edge->run));
		else
			cause_say(cause, ": it has not called %s no. %u of %s",
				  collective_name(edge->seen, edge->run), edge->run->number + 1,
				  group_text(edge->seen->page.group[edge->run->group].id, group,
					     sizeof(group)));
		say_unread(edge, peer, cause);
		return true;
	}
	if (!by_call || has == RUN_ENDED)
		return false;
	if (cause_take(cause, COLL_FLIGHT_NO_PROGRESS, peer->page.rank)) {
		say_place(peer, cause, since);
		cause_say(cause, ": its %s no. %u needs its calls to go on (progress=call)",
			  collective_name(edge->seen, edge->run), edge->run->number + 1);
		say_unread(edge, peer, cause);
	}
	return true;
}

/* Of two calls that differ, that of fewer ranks is to blame; of as many, the later rank's. */
static void edge_mismatch(const struct coll_flight_job *job, const struct coll_flight_edge *edge,
			  const struct coll_flight_seen *peer, struct coll_flight_cause *cause)
{
	const struct coll_flight_run *theirs = coll_wait_graph_run(peer, edge, NULL), *other = edge->run;
	const struct coll_flight_seen *odd = peer, *usual = edge->seen;
	uint32_t with = coll_wait_graph_hash_count(job, edge, usual->page.call[other->call].hash);
	uint32_t against = coll_wait_graph_hash_count(job, edge, odd->page.call[theirs->call].hash);
	char first[96], second[96];

	if (with < against || (with == against && usual->page.rank > odd->page.rank)) {
		odd = edge->seen;
		usual = peer;
		other = theirs;
		theirs = edge->run;
	}
	if (!cause_take(cause, COLL_FLIGHT_MISMATCH, odd->page.rank))
		return;
	coll_flight_run_text(odd, theirs, first, sizeof(first));
	coll_flight_run_text(usual, other, second, sizeof(second));
	if (strcmp(collective_name(odd, theirs), collective_name(usual, other)))
		cause_say(cause, "calls %s where rank %u calls %s", first, usual->page.rank, second);
	else
		cause_say(cause, "calls %s (%llu x %u B, root %u) with other arguments than rank "
			  "%u, which calls %s (%llu x %u B, root %u)", first,
			  (unsigned long long)odd->page.call[theirs->call].count,
			  odd->page.call[theirs->call].element, odd->page.call[theirs->call].root,
			  usual->page.rank, second,
			  (unsigned long long)usual->page.call[other->call].count,
			  usual->page.call[other->call].element, usual->page.call[other->call].root);
}

/* One end of a connection whose packets do not arrive, or are not read. */
static void edge_queues(const struct coll_flight_seen *from, uint32_t to,
			struct coll_flight_cause *cause)
{
	uint32_t i;

	for (i = 0; i < from->page.links; i++) {
		const struct coll_flight_link *link = &from->page.link[i];
		const struct coll_flight_queue *queue = &from->queue[i];

		if (link->peer != to)
			continue;
		if (queue->known && queue->unsent && queue->retransmits &&
		    cause_take(cause, COLL_FLIGHT_LOST_PATH, from->page.rank))
			cause_say(cause, "its packets to rank %u are lost: %u bytes are not "
				  "acknowledged after %u retransmissions", to, queue->unsent,
				  queue->retransmits);
		if (link->flags & COLL_FLIGHT_FULL &&
		    cause_take(cause, COLL_FLIGHT_FULL_QUEUE, from->page.rank))
			cause_say(cause, "it reads nothing more from rank %u: %llu bytes of "
				  "unexpected messages fill its queue (option unexpected_bytes), "
				  "and %u bytes wait unread", to,
				  (unsigned long long)from->page.kept, queue->unread);
		else if (queue->known && queue->unread && queue->unsent &&
			 cause_take(cause, COLL_FLIGHT_FULL_QUEUE, from->page.rank))
			cause_say(cause, "its link to rank %u has %u unsent bytes and an unread "
				  "receive queue of %u bytes", to, queue->unsent, queue->unread);
	}
}

/* Without a page: a link to the same node tells that it has lived here. */
static void edge_without_page(const struct coll_flight_job *job, uint32_t rank,
			      struct coll_flight_cause *cause)
{
	const struct coll_flight_page *any = &job->seen[0]->page;

	if (!cause_counts(cause, COLL_FLIGHT_DIED))
		return;
	if (any->local_ranks == (int32_t)any->ranks || coll_wait_graph_is_local(job, rank)) {
		if (cause_take(cause, COLL_FLIGHT_DIED, rank))
			cause_say(cause, "no page of it is here: it has ended, or has none (option flight)");
	} else if (cause_take(cause, COLL_FLIGHT_ELSEWHERE, rank)) {
		cause_say(cause, "on a node that was not asked: coll show --hosts asks several");
	}
}

static void edge_manager(const struct coll_flight_edge *edge, struct coll_flight_cause *cause)
{
	if (cause_take(cause, COLL_FLIGHT_MANAGER, edge->seen->page.rank))
		cause_say(cause, "waits for the manager of circuits (colld), which %s, for a circuit "
			  "to rank %u for %.1f s", edge->seen->page.manager == 2 ?
			  "is gone" : "has not answered", edge->wait.peer,
			  cause_seconds(edge->seen, edge->run->since));
}

struct causes {
	const struct coll_flight_job *job;
	struct coll_flight_cause *cause;
	uint32_t waits;
};

static void edge_cause(const struct coll_flight_edge *edge, void *argument)
{
	struct causes *causes = argument;
	struct coll_flight_cause *cause = causes->cause;
	const struct coll_flight_seen *peer = coll_flight_of(causes->job, edge->wait.peer);
	enum wait_graph_run has;

	causes->waits++;
	if (edge->wait.kind == COLL_OP_CONNECT) {
		edge_manager(edge, cause);
		return;
	}
	if (!peer) {
		edge_without_page(causes->job, edge->wait.peer, cause);
		return;
	}
	if (process_is_cause(peer, cause))
		return;
	coll_wait_graph_run(peer, edge, &has);
	if (peer_is_outside(edge, peer, has, cause))
		return;
	if (has == RUN_DIFFERS && cause_counts(cause, COLL_FLIGHT_MISMATCH))	/* it counts ranks */
		edge_mismatch(causes->job, edge, peer, cause);
	edge_queues(peer, edge->seen->page.rank, cause);
	edge_queues(edge->seen, edge->wait.peer, cause);
	if (has == RUN_ENDED && peer->time > peer->page.left + ARRIVES_NS &&
	    cause_take(cause, COLL_FLIGHT_IN_FLIGHT, edge->wait.peer))
		cause_say(cause, "its message to rank %u has not arrived, and it has left the call",
			  edge->seen->page.rank);
}

/* ---- the job --------------------------------------------------------------------------------- */

static void find_deadlock(const struct coll_flight_job *job, struct coll_flight_cause *cause)
{
	struct coll_flight_edge cycle[COLL_FLIGHT_CHAIN_MAX];
	const uint32_t length = coll_wait_graph_cycle(job, cycle, COLL_FLIGHT_CHAIN_MAX);
	char run[96];
	uint32_t i;

	if (!length || !cause_take(cause, COLL_FLIGHT_DEADLOCK, cycle[0].seen->page.rank))
		return;
	cause->text[0] = 0;
	cause_say(cause, "deadlock: the ranks %s: ", is_message(cycle[0].seen, cycle[0].run) ?
			"wait for each other's messages" :
			"call collectives of several groups in different orders");
	for (i = 0; i < length; i++)
		cause_say(cause, "%srank %u waits for rank %u in %s", i ? ", " : "",
			  cycle[i].seen->page.rank, cycle[i].wait.peer,
			  coll_flight_run_text(cycle[i].seen, cycle[i].run, run, sizeof(run)));
}

/* For how long the library has done nothing there. */
static double idle_seconds(const struct coll_flight_seen *seen)
{
	const struct coll_flight_page *page = &seen->page;

	return cause_seconds(seen, page->now > page->left ? page->now : page->left);
}

/* In a run, or kept from everything; not a process that has just ended, as all do. */
static bool may_be_kept(const struct coll_flight_seen *seen)
{
	if (seen->page.ended || !seen->page.joined || seen->flags & COLL_FLIGHT_ENDED ||
	    seen->state == 'Z' || seen->state == 'X')
		return false;
	return coll_flight_oldest(seen) || seen->state == 'T' || is_held(seen->state);
}

/* Nobody waits. A rank that does not go on is a fact nevertheless: the others may be gone, or not yet there. */
static void find_alone(const struct coll_flight_job *job, struct coll_flight_cause *cause)
{
	const struct coll_flight_seen *seen;
	size_t i;

	for (i = 0; i < job->count; i++)
		if (may_be_kept(job->seen[i]) && idle_seconds(job->seen[i]) > ALONE_NS / 1e9)
			process_is_cause(job->seen[i], cause);
	seen = cause->why ? coll_flight_of(job, cause->rank) : NULL;
	if (!seen)
		return;
	cause->alone = true;
	cause->seconds = idle_seconds(seen);
	if (cause->why != COLL_FLIGHT_IN_FUNCTION)
		cause_say(cause, "; it has not called for %.1f s", cause->seconds);
}

/* A rank that comes, and each time late: also where nobody waits for long at this moment. */
static void find_late(const struct coll_flight_job *job, struct coll_flight_cause *cause)
{
	struct coll_flight_late late;

	if ((cause->why && cause->why != COLL_FLIGHT_OUTSIDE) || !coll_flight_find_late(job, &late))
		return;
	if (cause_take(cause, COLL_FLIGHT_SLOW, late.rank))
		cause_say(cause, "slow: ");
	else if (cause->rank == late.rank)
		cause_say(cause, "; ");
	else
		return;
	cause_say(cause, "it was the last to call in %u of the latest %u calls, %.2f s after the "
		  "median rank", late.last, late.calls, late.late_ns / 1e9);
}

/*
 * What a rank outside of the library waits for is not known: an MPI's messages, a pipe. If another
 * rank cannot go on at all, it is the likelier cause. Returns the rank that others wait for.
 */
static uint32_t find_halted(const struct coll_flight_job *job, struct coll_flight_cause *cause)
{
	const uint32_t outside = cause->rank;
	size_t i;

	for (i = 0; i < job->count && cause->why == COLL_FLIGHT_OUTSIDE; i++) {
		const struct coll_flight_seen *seen = job->seen[i];

		if (seen->page.rank == outside || (seen->state != 'T' && !is_held(seen->state)) ||
		    !process_is_cause(seen, cause))
			continue;
		cause_say(cause, "; rank %u is outside of the library and may wait for it", outside);
	}
	return outside;
}

void coll_flight_find_cause(const struct coll_flight_job *job, struct coll_flight_cause *cause)
{
	uint32_t awaited;
	struct causes causes = { .job = job, .cause = cause };
	size_t i;

	memset(cause, 0, sizeof(*cause));
	cause->rank = COLL_FLIGHT_NO_RANK;
	/* Waiting ranks are not causes, unless their processes are held: others may wait for them. */
	for (i = 0; i < job->count; i++)
		coll_wait_graph_edges(job, job->seen[i], edge_cause, &causes);
	find_deadlock(job, cause);
	if (!cause->why && !causes.waits)
		find_alone(job, cause);
	awaited = find_halted(job, cause);
	find_late(job, cause);
	cause->awaited = causes.waits > 0;
	if (cause->why == COLL_FLIGHT_SLOW)
		awaited = cause->rank;
	if (cause->why && !cause->alone)
		cause->length = coll_wait_graph_chain(job, awaited, cause->chain,
						 COLL_FLIGHT_CHAIN_MAX);
}
