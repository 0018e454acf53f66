// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "board.h"
#include "core/port.h"
#include "exec.h"
#include "failure.h"
#include "health.h"
#include "live.h"
#include "libcoll/engine/engine.h"
#include "libcoll/link/arbiter.h"
#include "libcoll/link/stream.h"
#include "libcoll/transport/connect.h"
#include "libcoll/transport/seek.h"
#include "offload.h"
#include "stall.h"

enum {
	DELIVERY_LOOK_NS = 1000000,	/* interval of checks whether news has arrived */
	PINGS_PER_DEADLINE = 16,
	PINGS_UNANSWERED = 2,		/* after so many a rank is silent */
};

/* ---- suspicion ---------------------------------------------------------- */

/* Whether this run needs a message to or from this peer. */
static bool exec_waits_for(const struct coll_exec *exec, uint32_t peer)
{
	const struct coll_link *link = exec->planned->links[peer];
	const struct coll_message *message = link->queue;

	while (message && message->exec != exec)
		message = message->next;
	return exec->posted[peer] || message || coll_streams_send_for(link, exec);
}

/*
 * Of the peers with a ping unanswered for this long, the one with the oldest: a rank that
 * has only been slow of late is not blamed for one that is gone.
 */
static uint32_t silent_peer(const struct coll_exec *exec, uint64_t now, uint64_t timeout)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t silent = COLL_NONE, peer;
	uint64_t since = now - timeout + 1;

	for (peer = 0; peer < planned->schedule->peers; peer++) {
		const struct coll_link *link = planned->links[peer];

		if (exec_waits_for(exec, peer) && link->pinged && link->pinged < since) {
			since = link->pinged;
			silent = link->rank;
		}
	}
	return silent;
}

/* The rank that an awaited peer suspects. */
static uint32_t told_suspect(const struct coll_exec *exec)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t peer;

	for (peer = 0; peer < planned->schedule->peers; peer++)
		if (exec_waits_for(exec, peer) && planned->links[peer]->suspect != COLL_NONE)
			return planned->links[peer]->suspect;
	return COLL_NONE;
}

static uint32_t exec_suspect(const struct coll_exec *exec, uint64_t now, uint64_t timeout)
{
	uint32_t suspect = silent_peer(exec, now, timeout);

	return suspect != COLL_NONE ? suspect : told_suspect(exec);
}

static uint64_t exec_ping_period(const struct coll_exec *exec)
{
	return (exec->deadline - exec->started) / PINGS_PER_DEADLINE;
}

static uint64_t exec_timeout(const struct coll_exec *exec)
{
	return exec_ping_period(exec) * PINGS_UNANSWERED;
}

static const struct coll_exec *oldest_running(const struct coll_group *group)
{
	const struct coll_exec *oldest = group->active;

	while (oldest && oldest->state != EXEC_RUNNING)
		oldest = oldest->next;
	return oldest;
}

static uint32_t oldest_suspect(const struct coll_group *group)
{
	const struct coll_exec *oldest = oldest_running(group);

	return oldest ? exec_suspect(oldest, coll_now(), exec_timeout(oldest)) : COLL_NONE;
}

/*
 * The rank that the oldest run waits for in vain, or COLL_NONE. A rank that does not send may
 * be in a collective of the same ranks, and the other way round.
 */
static uint32_t group_suspect(const struct coll_group *group)
{
	const uint32_t suspect = oldest_suspect(group);

	return suspect == COLL_NONE && group->twin ? oldest_suspect(group->twin) : suspect;
}

struct coll_header coll_health_news(const struct coll_group *group)
{
	if (group->state != GROUP_OK)
		return coll_group_news(group);
	return (struct coll_header){ .run = COLL_NONE, .slot = group_suspect(group) };
}

/* ---- control messages --------------------------------------------------- */

static void health_ping(struct coll_link *link, const struct coll_header *header)
{
	struct coll_group *group = link->group;
	struct coll_exec *exec = coll_exec_find(group, header->run);

	if (exec && exec->planned->hash != header->hash) {
		coll_group_mismatch(link);
		return;
	}
	coll_link_control(link, COLL_MESSAGE_PONG, group->next_run, group_suspect(group), 0);
}

/* A peer has left when its goodbye came on the link and on each stream that it used. */
static void health_goodbye(struct coll_link *said, const struct coll_header *header)
{
	struct coll_link *link = said->whole;

	said->goodbye = true;
	if (!said->number)
		said->goodbyes = header->slot;
	else if (said->state == LINK_UP)
		coll_link_set_state(said, LINK_LEFT);
	if (!link->goodbye || coll_streams_owe_goodbye(link))
		return;
	coll_board_rest(link->group);
	coll_group_link_left(link);
}

void coll_health_message(struct coll_link *said, const struct coll_header *header)
{
	struct coll_link *link = said->whole;
	struct coll_group *group = link->group;

	switch (header->kind) {
	case COLL_MESSAGE_PING:
		if (group->state == GROUP_OK && !group->freed)
			health_ping(link, header);
		break;
	case COLL_MESSAGE_PONG:
		link->pinged = 0;
		link->suspect = header->slot < group->ranks ? header->slot : COLL_NONE;
		break;
	case COLL_MESSAGE_FAIL:
		if ((header->slot < group->ranks || header->slot == COLL_NONE) && !group->freed)
			coll_group_fail(group, coll_header_error(header),
					header->slot < group->ranks ? header->slot : link->rank,
					header->run < group->ranks ? header->run : link->rank,
					header->hash == EPROTO ? "called with different arguments" :
					header->hash == ECANCELED ? "revoked the group" :
							       "failed");
		break;
	case COLL_MESSAGE_BYE:
		health_goodbye(said, header);
		break;
	}
}

/* ---- deadlines ---------------------------------------------------------- */

static void exec_ping(struct coll_exec *exec, uint64_t now)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t peer;

	exec->pinged = now;
	for (peer = 0; peer < planned->schedule->peers; peer++) {
		struct coll_link *link = planned->links[peer];

		if (!exec_waits_for(exec, peer) || link->pinged)
			continue;
		link->pinged = now;
		/* A peer that is to connect is asked by coll_seek(), soon; any other counts as silent. */
		if (link->state == LINK_UP)
			coll_link_control(link, COLL_MESSAGE_PING,
					  exec->group->peers ? COLL_NONE : exec->number, COLL_NONE,
					  planned->hash);	/* each rank numbers its messages */
		else if (link->state == LINK_IDLE)
			link->looked = 0;
	}
}

/*
 * With too many unexpected messages, links and the pings on them are not read. So these
 * peers get a pong unasked, with the suspect.
 */
static void group_reassure(struct coll_group *group, uint32_t suspect)
{
	uint32_t rank;

	if (!coll_group_is_full(group))
		return;
	for (rank = 0; rank < group->ranks; rank++) {
		struct coll_link *link = group->links[rank];

		if (link && link->state == LINK_UP && !link->expected && !link->queue)
			coll_link_control(link, COLL_MESSAGE_PONG, group->next_run, suspect, 0);
	}
}

/* This rank itself stood still: a pong that it has not read yet blames no peer. */
static void exec_forgive(const struct coll_exec *exec, uint64_t now)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t peer;

	for (peer = 0; peer < planned->schedule->peers; peer++)
		if (planned->links[peer]->pinged)
			planned->links[peer]->pinged = now;
}

/* The suspect would connect, and this rank cannot accept: it blames itself. */
static bool exec_blames_itself(struct coll_exec *exec, uint32_t suspect)
{
	struct coll_group *group = exec->group;
	const struct coll_link *link = suspect < group->ranks ? group->links[suspect] : NULL;

	if (!group->context->listen_error || !link || link->state != LINK_IDLE)
		return false;
	coll_group_fail(group, group->context->listen_error, group->rank, COLL_NONE,
			"it cannot accept a connection");
	return true;
}

/* The deadline has passed and all peers answer: blame a rank that is waited for. */
static void exec_expire(struct coll_exec *exec, uint64_t now)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t suspect = exec_suspect(exec, now, exec_timeout(exec)), peer;
	const char *reason = "nothing came from it before the deadline";

	if (suspect == COLL_NONE)
		suspect = silent_peer(exec, now, 0);
	for (peer = 0; suspect == COLL_NONE && peer < planned->schedule->peers; peer++)
		if (exec_waits_for(exec, peer))
			suspect = planned->links[peer]->rank;
	if (suspect == COLL_NONE)
		suspect = exec->group->rank;
	if (!exec_blames_itself(exec, suspect))
		coll_group_fail(exec->group, -ETIMEDOUT, suspect, COLL_NONE, reason);
}

/* Whether the peers live that are to connect to this rank. */
static void exec_seek(const struct coll_exec *exec, uint64_t now, bool look)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t peer;

	for (peer = 0; peer < planned->schedule->peers; peer++)
		if (exec_waits_for(exec, peer))
			coll_seek(planned->links[peer], now, look);
}

static void exec_check(struct coll_exec *exec, uint64_t now)
{
	struct coll_context *context = exec->group->context;
	const uint64_t whole = exec->deadline - exec->started, waited = now - exec->started;
	const uint64_t period = exec_ping_period(exec), timeout = exec_timeout(exec);
	const uint64_t first = whole / 4 < HEALTH_FIRST_NS ? whole / 4 : HEALTH_FIRST_NS;
	const bool is_long = waited >= first;
	uint32_t silent;

	if (now >= exec->deadline) {
		exec_expire(exec, now);
		return;
	}
	if (now - exec->checked > timeout && exec->pinged)
		exec_forgive(exec, now);
	exec->checked = now;
	coll_engine_check_at(&context->engine, exec->deadline);
	if (is_long) {
		coll_group_watch(exec->group);
		if (exec->group->twin)
			coll_group_watch(exec->group->twin);
		coll_live_slow(context);
	} else {	/* it was another group's time */
		coll_engine_check_at(&context->engine, exec->started + first);
	}
	if (exec->group->context->awaited)
		exec_seek(exec, now, is_long);
	if (exec->group->lost || exec->group->state != GROUP_OK)
		return;
	if (waited < whole / 2) {
		coll_engine_check_at(&context->engine, exec->started + whole / 2);
		return;
	}
	/* A thousand messages wait as long as one: the node is looked at for the oldest. */
	if (!exec->pinged && exec == oldest_running(exec->group))
		coll_stall_report(exec, now);
	if (now - exec->pinged >= period) {
		exec_ping(exec, now);
		group_reassure(exec->group, exec_suspect(exec, now, timeout));
	}
	coll_engine_check_at(&context->engine, now + period);
	silent = waited >= whole / 10 * 9 ? silent_peer(exec, now, timeout) : COLL_NONE;
	if (silent != COLL_NONE && !exec_blames_itself(exec, silent))
		coll_group_fail(exec->group, -ETIMEDOUT, silent, COLL_NONE,
				"it does not answer: stopped, or out of reach");
}

void coll_health_hold(struct coll_exec *exec, uint64_t ns)
{
	coll_assert(exec->state == EXEC_COMPLETED);
	if (exec->held)
		return;
	exec->held = true;
	exec->started = exec->checked = coll_now();
	exec->deadline = exec->started + ns;
	exec->pinged = 0;
	coll_engine_check_at(&exec->group->context->engine, 0);
}

bool coll_health_rank_has_ended(const struct coll_group *group, uint32_t rank)
{
	return coll_connect_look(group->context, group->world[rank]) == -ECONNRESET;
}

/* ---- failing groups ----------------------------------------------------- */

/* Closes all links and completes all runs. */
static void group_failed(struct coll_group *group)
{
	uint32_t rank;

	coll_group_set_state(group, GROUP_FAILED);
	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank])
			coll_link_close(group->links[rank]);
	coll_exec_fail_all(group, group->error);
}

/* Whether all peers have the news. A failed rank that timed out need not. */
static bool group_news_out(const struct coll_group *group)
{
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++) {
		const struct coll_link *link = group->links[rank];

		if (rank == group->failed_rank && group->error == -ETIMEDOUT)
			continue;
		if (link && (link->state == LINK_CONNECTING ||
			     (link->attached && link->state != LINK_CLOSED &&
			      link->state != LINK_LOST && !coll_link_delivered(link))))
			return false;
	}
	return true;
}

/* Until then the group waits for a better cause than its lost link. */
static void check_lost(struct coll_group *group, uint64_t now)
{
	if (!group->lost || group->state != GROUP_OK || group->freed)
		return;
	if (now < group->lost_until)
		coll_engine_check_at(&group->context->engine, group->lost_until);
	else
		coll_group_fail(group, group->lost_error, group->lost->rank, COLL_NONE,
				group->lost_reason);
}

void coll_health_check(struct coll_context *context, uint64_t now)
{
	struct coll_group *group;
	struct coll_exec *exec, *next;

	context->engine.next_check = COLL_FOREVER;
	context->attentive = false;
	coll_arbiter_check(context, now);
	for (group = context->groups; group; group = group->next) {
		check_lost(group, now);
		context->attentive |= group->watchful || group->state == GROUP_FAILING;
		for (exec = group->active; exec && group->state == GROUP_OK; exec = next) {
			next = exec->next;
			if (exec->state == EXEC_RUNNING || exec->held)
				exec_check(exec, now);
		}
		if (group->state != GROUP_FAILING)
			continue;
		coll_offload_detach(group);	/* the kernel has told the peers of its links */
		if (now >= group->failing_until || group_news_out(group))
			group_failed(group);
		else
			coll_engine_check_at(&context->engine, now + DELIVERY_LOOK_NS);
	}
}
