// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "report_remedy.h"

const char *const coll_flight_remedy_names[COLL_FLIGHT_REMEDIES] = {
	"pin", "stop", "T", "co-schedule", "leave-out",
};

/* ---- who took the cores ----------------------------------------------------- */

/* A program of somebody, that can be stopped: none of the kernel's, and not the job itself. */
static bool is_program(const struct coll_flight_seen *seen, const struct coll_flight_taker *taker)
{
	return taker->ns && taker->kind == COLL_FLIGHT_TAKER_TASK && *taker->name &&
	       !(taker->flags & (COLL_FLIGHT_TAKER_KTHREAD | COLL_FLIGHT_TAKER_BOUND)) &&
	       !coll_flight_is_own_program(taker, &seen->page);
}

static bool is_pinned_away(const struct coll_flight_seen *seen,
			   const struct coll_flight_taker *taker)
{
	return taker->kind == COLL_FLIGHT_TAKER_INTERRUPTS ||
	       taker->kind == COLL_FLIGHT_TAKER_SOFTIRQS ||
	       (taker->kind == COLL_FLIGHT_TAKER_TASK &&
		!(taker->flags & COLL_FLIGHT_TAKER_BOUND) &&
		!coll_flight_is_own_program(taker, &seen->page));
}

/* A program that took cores. */
struct taking_program {
	const char *name;
	double ns;
};

static int by_name(const void *left, const void *right)
{
	const struct taking_program *a = left, *b = right;

	return strcmp(a->name, b->name);
}

/* Of each rank that somebody looked at. */
static size_t find_programs(const struct coll_flight_job *job, struct taking_program *program)
{
	size_t found = 0, i;
	uint32_t k;

	for (i = 0; i < job->count; i++)
		for (k = 0; coll_flight_is_observed(job->seen[i]) && k < COLL_FLIGHT_TAKERS; k++) {
			const struct coll_flight_taker *taker = &job->seen[i]->observed.taker[k];

			if (is_program(job->seen[i], taker))
				program[found++] = (struct taking_program){ taker->name, taker->ns };
		}
	return found;
}

/* The name that took most of all ranks, or "". NULL: there is no memory. */
static const char *main_program(const struct coll_flight_job *job)
{
	struct taking_program *program = calloc(job->count * COLL_FLIGHT_TAKERS, sizeof(*program));
	const char *name = "";
	double most = 0, ns = 0;
	size_t count, i;

	if (!program)
		return NULL;
	count = find_programs(job, program);
	qsort(program, count, sizeof(*program), by_name);
	for (i = 0; i < count; i++) {
		ns = i && !by_name(&program[i - 1], &program[i]) ? ns + program[i].ns : program[i].ns;
		if (ns > most) {
			most = ns;
			name = program[i].name;
		}
	}
	free(program);
	return name;
}

/* Of a rank's time without a core what option `inject` did not take. */
static double kernels_part(const struct coll_flight_page *page)
{
	const double all = (double)page->delayed + page->injected;

	return all > 0 ? page->delayed / all : 1;
}

/*
 * Whether the host of this rank has no CPU without a rank of the job: by the CPUs that they are bound
 * to, else by their number.
 */
static bool is_full(const struct report_remedies *remedies, size_t index)
{
	const struct coll_flight_seen *seen = remedies->job->seen[index];
	char cpus[64];

	return coll_flight_find_cpus(remedies->job, seen, cpus, sizeof(cpus)) ||
	       (!*cpus && remedies->host[remedies->rank[index].host].ranks >= seen->observed.online);
}

/* By its first rank that somebody looked at: each look is at all ranks. */
static bool is_full_host(struct report_remedies *remedies, size_t index)
{
	struct remedy_host *host = &remedies->host[remedies->rank[index].host];

	if (!host->looked) {
		host->looked = true;
		host->full = is_full(remedies, index);
	}
	return host->full;
}

/* The parts of the rank's time without a core that a remedy gives back. */
static void find_parts(struct report_remedies *remedies, size_t index)
{
	const struct coll_flight_seen *seen = remedies->job->seen[index];
	const double taken = coll_flight_taken_ns(&seen->observed) / kernels_part(&seen->page);
	struct remedy_rank *rank = &remedies->rank[index];
	uint32_t i;

	if (!coll_flight_is_observed(seen) || !(taken > 0) || !isfinite(taken))
		return;
	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		const struct coll_flight_taker *taker = &seen->observed.taker[i];

		if (is_pinned_away(seen, taker))
			rank->pin += taker->ns / taken;
		if (is_program(seen, taker) && !strcmp(taker->name, remedies->stopped))
			rank->stop += taker->ns / taken;
	}
	if (is_full_host(remedies, index))
		rank->pin = 0;
	else
		remedies->nowhere = false;
}

int coll_report_remedies_open(struct report_remedies *remedies, const struct coll_flight_job *job,
			      const uint32_t *host, const struct report_runs *runs)
{
	const char *stopped = main_program(job);
	size_t i;

	*remedies = (struct report_remedies){ .job = job, .nowhere = true };
	remedies->rank = calloc(job->count, sizeof(*remedies->rank));
	remedies->host = calloc(job->count, sizeof(*remedies->host));
	if (!stopped || !remedies->rank || !remedies->host)
		return -ENOMEM;
	snprintf(remedies->stopped, sizeof(remedies->stopped), "%s", stopped);
	for (i = 0; i < job->count; i++) {
		remedies->rank[i].host = host[i];
		remedies->host[host[i]].ranks++;
	}
	for (i = 0; i < job->count; i++) {
		remedies->observed |= coll_flight_is_observed(job->seen[i]);
		find_parts(remedies, i);
	}
	coll_report_redundancy_find(&remedies->redundancy, job, runs);
	return 0;
}

void coll_report_remedies_close(struct report_remedies *remedies)
{
	free(remedies->rank);
	free(remedies->host);
}

/* ---- in a call ----------------------------------------------------------------- */

static void remedy_add(struct report_saved *saved, double ns)
{
	saved->ns += ns;
	saved->block += ns;
}

void coll_report_remedies_begin(struct report_remedies *remedies, const struct report_runs *runs,
				size_t first, size_t end)
{
	remedies->before = remedies->stolen = 0;
	remedies->site = end - first != remedies->job->seen[0]->page.ranks ? NULL :
			 coll_report_redundancy_of(&remedies->redundancy, runs->record[first].run);
}

void coll_report_remedies_lost(struct report_remedies *remedies, enum coll_flight_loss_kind kind,
			       size_t index, size_t sender, double ns)
{
	const struct remedy_rank *rank = &remedies->rank[index];
	const uint32_t from = remedies->rank[sender].host;

	if (kind == COLL_FLIGHT_LOSS_STOLEN) {
		remedies->stolen += ns;
		remedy_add(&remedies->pin, rank->pin * ns);
		remedy_add(&remedies->stop, rank->stop * ns);
	}
	if (remedies->site)
		remedy_add(&remedies->redundant, remedies->site->share * ns);
	remedy_add(&remedies->host[rank->host].without, ns);
	if (from != rank->host)
		remedy_add(&remedies->host[from].without, ns);
}

/* ---- before a call --------------------------------------------------------------- */

/* As it would be. */
struct begin_if {
	double last;			/* when the last rank begins */
	double all;			/* what every rank has back, which is saved whoever waits */
};

/* When the last ranks begin: as it was, and as it would be. */
struct begins {
	double last;
	struct begin_if pinned, stopped, undisturbed;
	uint32_t host;			/* of the last one */
	double elsewhere;		/* the last one on another host */
	double ranks, before;		/* ns that all would wait if each waited for the last one */
};

static void begin_earlier(struct begin_if *begin, double began, double back)
{
	begin->last = fmax(begin->last, began - back);
	begin->all = fmin(begin->all, back);
}

static void find_begins(struct report_remedies *remedies, const struct report_runs *runs,
			size_t first, size_t end, struct begins *begins)
{
	const struct begin_if none = { .last = -INFINITY, .all = INFINITY };
	size_t i;

	*begins = (struct begins){ .last = -INFINITY, .pinned = none, .stopped = none,
				   .undisturbed = none, .elsewhere = -INFINITY,
				   .ranks = end - first };
	for (i = first; i < end; i++) {
		const struct report_record *record = &runs->record[i];
		const struct remedy_rank *rank = &remedies->rank[record->index];
		const double began = report_began(record, runs->base),
			     stolen = (double)record->run->stolen_before * COLL_FLIGHT_TICK;

		if (began > begins->last)
			begins->host = record->host;
		begins->last = fmax(begins->last, began);
		begin_earlier(&begins->pinned, began, rank->pin * stolen);
		begin_earlier(&begins->stopped, began, rank->stop * stolen);
		begin_earlier(&begins->undisturbed, began, stolen);
	}
	for (i = first; i < end; i++) {
		const double began = report_began(&runs->record[i], runs->base);

		begins->before += begins->last - began;
		if (runs->record[i].host != begins->host)
			begins->elsewhere = fmax(begins->elsewhere, began);
	}
}

/*
 * Where all come late nobody waits, and all would come earlier. Beyond that the last one begins then
 * instead: as far as the others waited for it, which a root may not have done.
 */
static double begin_saves(const struct report_remedies *remedies, const struct begins *begins,
			  struct begin_if instead)
{
	const double part = begins->before > 0 ? fmin(1, remedies->before / begins->before) : 1;

	return begins->ranks * (instead.all + part * (begins->last - instead.last - instead.all));
}

static double held_ns(const struct report_record *record)
{
	return ((double)record->run->stolen + record->run->stolen_before) * COLL_FLIGHT_TICK;
}

enum { HELD_NOT_HERE = -1 };	/* the host has no rank in the run */

/* The most time without a core of each host in this run. Returns the most of all. */
static double find_held(struct report_remedies *remedies, const struct report_runs *runs,
			size_t first, size_t end)
{
	double most = 0;
	size_t i;

	for (i = 0; i < remedies->job->count; i++)
		remedies->host[i].held = HELD_NOT_HERE;
	for (i = first; i < end; i++) {
		struct remedy_host *host = &remedies->host[runs->record[i].host];

		host->held = fmax(host->held, held_ns(&runs->record[i]));
		most = fmax(most, host->held);
	}
	return most;
}

/*
 * All that ranks without a core cost in this run, against what one host's take alone: disturbances
 * at the same time on all hosts take as long as the longest of them. A host without a rank in this
 * run says nothing of it: for that one the run is as long as it can be.
 */
static void end_together(struct report_remedies *remedies, const struct report_runs *runs,
			 size_t first, size_t end, const struct begins *begins)
{
	const double cost = remedies->stolen + begin_saves(remedies, begins, begins->undisturbed),
		     most = find_held(remedies, runs, first, end);
	size_t i;

	for (i = 0; i < remedies->job->count; i++) {
		struct remedy_host *host = &remedies->host[i];

		if (host->ranks)
			remedy_add(&host->together,
				   cost - begins->ranks * (host->held < 0 ? most : host->held));
	}
}

void coll_report_remedies_end(struct report_remedies *remedies, const struct report_runs *runs,
			      size_t first, size_t end)
{
	struct begins begins;

	find_begins(remedies, runs, first, end, &begins);
	remedy_add(&remedies->pin, begin_saves(remedies, &begins, begins.pinned));
	remedy_add(&remedies->stop, begin_saves(remedies, &begins, begins.stopped));
	if (isfinite(begins.elsewhere) && begins.last - begins.elsewhere > runs->blur)
		remedy_add(&remedies->host[begins.host].without,
			   begin_saves(remedies, &begins, (struct begin_if){ begins.elsewhere, 0 }));
	if (remedies->site)
		remedy_add(&remedies->redundant, -begins.ranks * remedies->site->price);
	end_together(remedies, runs, first, end, &begins);
}

void coll_report_remedies_end_block(struct report_remedies *remedies,
				    const struct report_took *took)
{
	size_t i;

	coll_report_saved_end_block(&remedies->pin, took);
	coll_report_saved_end_block(&remedies->stop, took);
	coll_report_saved_end_block(&remedies->redundant, took);
	for (i = 0; i < remedies->job->count; i++)
		if (remedies->host[i].ranks) {
			coll_report_saved_end_block(&remedies->host[i].together, took);
			coll_report_saved_end_block(&remedies->host[i].without, took);
		}
}

/* ---- in the report ------------------------------------------------------------------ */

/* By the host that is disturbed most: it decides. */
static const struct report_saved *least_together(const struct report_remedies *remedies)
{
	const struct report_saved *least = NULL;
	size_t i;

	for (i = 0; i < remedies->job->count; i++)
		if (remedies->host[i].ranks && (!least || remedies->host[i].together.ns < least->ns))
			least = &remedies->host[i].together;
	return least;
}

static size_t worst_host(const struct report_remedies *remedies)
{
	size_t worst = 0, i;

	for (i = 1; i < remedies->job->count; i++)
		if (remedies->host[i].ranks &&
		    remedies->host[i].without.ns > remedies->host[worst].without.ns)
			worst = i;
	return worst;
}

/* Its ranks' work would have to go elsewhere: that is not in what is saved. */
static const char *worst_host_name(const struct report_remedies *remedies)
{
	return remedies->job->seen[worst_host(remedies)]->page.host;
}

static void redundancy_text(const struct report_redundancy *redundancy, char *text)
{
	const struct redundant_site *site = redundancy->site;

	if (!redundancy->sites) {
		snprintf(text, COLL_FLIGHT_WORDS, "T, redundant exchanges: the model finds no gain");
		return;
	}
	snprintf(text, COLL_FLIGHT_WORDS, "T: %s of %llu bytes by %s:T=%u",
		 coll_collective_names[site->collective], (unsigned long long)site->bytes,
		 site->relays ? "butterfly-relayed" : "butterfly-redundant", site->exchanges);
	if (site->relays)
		coll_flight_say(text, COLL_FLIGHT_WORDS, ",relays=%u", site->relays);
	if (redundancy->sites > 1)
		coll_flight_say(text, COLL_FLIGHT_WORDS, ", and the like in %u other calls",
				redundancy->sites - 1);
}

/* With the names that are known then. */
static void remedy_text(const struct report_remedies *remedies, struct coll_flight_remedy *remedy)
{
	static const char *const words[COLL_FLIGHT_REMEDIES] = {
		"pin programs and interrupts off the ranks' CPUs", "stop a program",
		"T, redundant exchanges", "co-schedule: disturb all nodes at the same time",
		"leave out a node",
	};

	snprintf(remedy->what, sizeof(remedy->what), "%s", words[remedy->kind]);
	if (remedy->unknown)
		return;
	if (remedy->kind == COLL_FLIGHT_REMEDY_STOP)
		snprintf(remedy->what, sizeof(remedy->what), "stop `%s`", remedies->stopped);
	else if (remedy->kind == COLL_FLIGHT_REMEDY_REDUNDANCY)
		redundancy_text(&remedies->redundancy, remedy->what);
	else if (remedy->kind == COLL_FLIGHT_REMEDY_LEAVE_OUT)
		snprintf(remedy->what, sizeof(remedy->what), "leave out node %s",
			 worst_host_name(remedies));
}

/* NULL: the record tells. */
static const char *why_unknown(const struct coll_flight_report *report,
			       const struct report_remedies *remedies,
			       enum coll_flight_remedy_kind kind)
{
	if (!report->timed)
		return "no call was timed on all ranks";
	if (report->skewed)
		return "the timed calls are no sample of all";
	switch (kind) {
	case COLL_FLIGHT_REMEDY_PIN:
	case COLL_FLIGHT_REMEDY_STOP:
		if (!remedies->observed)
			return "nobody looked at the ranks: coll run --report, coll report --watch or "
			       "colld do";
		if (kind == COLL_FLIGHT_REMEDY_STOP && !*remedies->stopped)
			return "no program has a name that took a core";
		return kind == COLL_FLIGHT_REMEDY_PIN && remedies->nowhere ?
			       "nothing was taken, or the nodes have no CPU without a rank" : NULL;
	case COLL_FLIGHT_REMEDY_REDUNDANCY:
		return remedies->redundancy.fitting ? NULL :
			       "no timed allreduce of 4 ranks or more is without T, and waited for messages";
	default:
		if (report->hosts < 2)
			return "the job is on one node";
		return report->clock_error < 0 ? "the nodes' clocks could not be compared" : NULL;
	}
}

static const struct report_saved *saved_by(const struct report_remedies *remedies,
					   enum coll_flight_remedy_kind kind)
{
	switch (kind) {
	case COLL_FLIGHT_REMEDY_PIN:
		return &remedies->pin;
	case COLL_FLIGHT_REMEDY_STOP:
		return &remedies->stop;
	case COLL_FLIGHT_REMEDY_REDUNDANCY:
		return &remedies->redundant;
	case COLL_FLIGHT_REMEDY_TOGETHER:
		return least_together(remedies);
	default:
		return &remedies->host[worst_host(remedies)].without;
	}
}

static int by_saved(const void *left, const void *right)
{
	const struct coll_flight_remedy *a = left, *b = right;

	if (!a->unknown != !b->unknown)
		return a->unknown ? 1 : -1;
	if (a->saved != b->saved)
		return a->saved > b->saved ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

void coll_report_take_remedies(struct coll_flight_report *report,
			       const struct report_remedies *remedies,
			       const struct report_took *took, double scale)
{
	uint32_t kind;

	for (kind = 0; kind < COLL_FLIGHT_REMEDIES; kind++) {
		struct coll_flight_remedy *remedy = &report->remedy[kind];
		const struct report_interval saved =
			coll_report_interval(saved_by(remedies, kind), took, scale, report->seconds);

		*remedy = (struct coll_flight_remedy){ .kind = kind, .least = -1, .most = -1 };
		remedy->unknown = why_unknown(report, remedies, kind);
		remedy_text(remedies, remedy);
		if (remedy->unknown)
			continue;
		remedy->saved = saved.mean;
		remedy->least = saved.least;
		remedy->most = saved.most;
	}
	qsort(report->remedy, COLL_FLIGHT_REMEDIES, sizeof(*report->remedy), by_saved);
}
