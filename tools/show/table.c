// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* For people. */
#include <stdio.h>
#include <string.h>

#include "core/names.h"
#include "show.h"

enum { PIDS_SHOWN = 4, WAITS_SHOWN = 8 };

/* ---- a rank ------------------------------------------------------------------------- */

static const char *state_of_process(const struct coll_flight_seen *seen)
{
	if (seen->flags & COLL_FLIGHT_ENDED || seen->state == 'Z' || seen->state == 'X')
		return "ended";
	if (seen->state == 't' || seen->owner_state == 't')
		return "held";
	if (seen->state == 'T' || seen->owner_state == 'T')
		return "stopped";
	return NULL;
}

const char *show_state(const struct coll_flight_seen *seen, uint64_t *since)
{
	const bool inside = coll_flight_inside(seen, since);
	const char *state = state_of_process(seen);

	if (state)
		return state;
	if (!seen->page.joined) {
		*since = seen->page.opened;
		return "joining";
	}
	if (seen->page.user_function)
		return "in function";
	if (inside)
		return "waits";
	return seen->state == 'R' ? "computing" : "outside";
}

double show_seconds(const struct coll_flight_seen *seen, uint64_t since)
{
	return seen->time > since ? (seen->time - since) / 1e9 : 0;
}

/* ---- the list ----------------------------------------------------------------------- */

static void list_pids(const struct coll_flight_job *job)
{
	size_t i;

	for (i = 0; i < job->count && i < PIDS_SHOWN; i++)
		printf("%s%u", i ? "," : "", job->seen[i]->pid);
	if (i < job->count)
		printf(",...");
}

/* The state of most ranks, with their number, and the longest time in it. */
static void list_state(const struct coll_flight_job *job)
{
	const char *first = "";
	size_t i, count = 0;
	double longest = 0;
	uint64_t since;

	for (i = 0; i < job->count; i++) {
		const char *state = show_state(job->seen[i], &since);

		if (!*first || !strcmp(state, "waits"))
			first = state;
	}
	for (i = 0; i < job->count; i++) {
		if (strcmp(show_state(job->seen[i], &since), first))
			continue;
		count++;
		if (show_seconds(job->seen[i], since) > longest)
			longest = show_seconds(job->seen[i], since);
	}
	printf("  %zu %-10s %9.1f s", count, first, longest);
}

static void list_job(const struct coll_flight_job *job)
{
	const struct coll_flight_page *page = &job->seen[0]->page;
	char ranks[32];

	snprintf(ranks, sizeof(ranks), "%zu/%u", job->count, page->ranks);
	printf("%-20s %-15s %9s ", page->job, page->program, ranks);
	list_state(job);
	printf("  ");
	list_pids(job);
	printf("\n");
}

void show_list(const struct coll_flight_set *set)
{
	size_t first, end;

	if (set->count)
		printf("%-20s %-15s %9s   %-12s %11s  %s\n", "JOB", "PROGRAM", "RANKS", "STATE",
		       "FOR", "PIDS");
	else
		printf("no job of this user is on this node\n");
	for (first = 0; first < set->count; first = end) {
		end = coll_flight_job_end(set, first);
		list_job(&(struct coll_flight_job){ set->seen + first, end - first });
	}
}

/* ---- a job ---------------------------------------------------------------------------- */

static void job_rank(const struct coll_flight_seen *seen)
{
	const struct coll_flight_run *run = coll_flight_oldest(seen);
	uint64_t since;
	const char *state = show_state(seen, &since);
	char text[96];

	printf("rank %-5u pid %-8u %-10s %8.1f s", seen->page.rank, seen->pid, state,
	       show_seconds(seen, since));
	if (run)
		printf("  %s%s", coll_flight_run_text(seen, run, text, sizeof(text)),
		       run->where == COLL_FLIGHT_KERNEL ? ", in the kernel" : "");
	printf("\n");
}

struct printed {
	uint32_t count;
};

static const struct coll_flight_link *link_to(const struct coll_flight_seen *seen, uint32_t peer,
					      const struct coll_flight_queue **queue)
{
	uint32_t i;

	for (i = 0; i < seen->page.links; i++)
		if (seen->page.link[i].peer == peer) {
			*queue = &seen->queue[i];
			return &seen->page.link[i];
		}
	return NULL;
}

static void print_link(const struct coll_flight_seen *seen, uint32_t peer)
{
	const struct coll_flight_queue *queue;
	const struct coll_flight_link *link = link_to(seen, peer, &queue);

	if (!link)
		return;
	printf("; link %s", link->flags & COLL_FLIGHT_MEMORY ? "memory" : "socket");
	if (link->heard)
		printf(", heard %.1f s ago", show_seconds(seen, link->heard));
	if (link->queued)
		printf(", %llu B queued", (unsigned long long)link->queued);
	if (queue->known && (queue->unsent || queue->unread))
		printf(", %u B unsent, %u B unread", queue->unsent, queue->unread);
}

static void print_wait(const struct coll_flight_edge *edge, void *argument)
{
	const struct coll_flight_wait *wait = &edge->wait;
	struct printed *printed = argument;
	char text[96];

	if (printed->count++ >= WAITS_SHOWN)
		return;
	printf("  rank %u -> rank %u: %s, op %u, slot %u, %llu B, for %.1f s in %s",
	       edge->seen->page.rank, wait->peer, coll_op_kind_name(wait->kind), wait->op,
	       wait->slot, (unsigned long long)wait->bytes,
	       show_seconds(edge->seen, edge->run->since),
	       coll_flight_run_text(edge->seen, edge->run, text, sizeof(text)));
	print_link(edge->seen, wait->peer);
	printf("\n");
}

static void job_waits(const struct coll_flight_seen *seen)
{
	struct printed printed = { 0 };

	coll_flight_waits(seen, print_wait, &printed);
	if (printed.count > WAITS_SHOWN || seen->page.waits_more)
		printf("  rank %u -> %u more\n", seen->page.rank,
		       printed.count - WAITS_SHOWN + seen->page.waits_more);
}

static void job_chain(const struct coll_flight_cause *cause)
{
	uint32_t i;

	if (cause->length < 2)
		return;
	printf("wait chain: ");
	for (i = 0; i < cause->length; i++)
		printf("%s%u", i ? " -> " : "", cause->chain[i]);
	printf("\n");
}

static void job_failures(const struct coll_flight_job *job)
{
	size_t i;
	uint32_t j;

	for (i = 0; i < job->count; i++)
		for (j = 0; j < COLL_FLIGHT_GROUPS; j++)
			if (job->seen[i]->page.group[j].error)
				printf("rank %u: a group has failed: %s\n", job->seen[i]->page.rank,
				       job->seen[i]->page.group[j].text);
}

void show_job(const struct coll_flight_job *job)
{
	const struct coll_flight_page *page = &job->seen[0]->page;
	struct coll_flight_cause cause;
	size_t i;

	coll_flight_find_cause(job, &cause);
	printf("job %s: %s, %zu of %u ranks are here\n", page->job, page->program, job->count,
	       page->ranks);
	for (i = 0; i < job->count; i++)
		job_rank(job->seen[i]);
	job_failures(job);
	printf("waits:\n");
	for (i = 0; i < job->count; i++)
		job_waits(job->seen[i]);
	job_chain(&cause);
	if (cause.why)
		printf("%s %s\n", cause.alone ? "no rank waits;" : "first cause:", cause.text);
	else
		printf("first cause: none found: no rank waits for long\n");
}
