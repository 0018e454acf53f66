// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "report_remedy.h"

const char *const coll_flight_remedy_names[COLL_FLIGHT_REMEDIES] = {
	"pin", "stop", "T", "leaf", "co-schedule", "leave-out",
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
	struct remedy_rank *rank = &remedies->rank[index];
	uint32_t i;

	if (!coll_flight_is_observed(seen) || !(coll_flight_taken_ns(&seen->observed) > 0))
		return;
	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		const struct coll_flight_taker *taker = &seen->observed.taker[i];
		const double part = coll_flight_part_of_waited(&seen->observed, taker) *
				    kernels_part(&seen->page);

		if (is_pinned_away(seen, taker))
			rank->pin += part;
		if (is_program(seen, taker) && !strcmp(taker->name, remedies->stopped))
			rank->stop += part;
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
	if (!stopped || !remedies->rank || !remedies->host || coll_report_leaf_open(&remedies->leaf, job->count))
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
	coll_report_leaf_close(&remedies->leaf);
}

/* ---- in a call ----------------------------------------------------------------- */

void coll_report_remedies_begin(struct report_remedies *remedies, const struct report_runs *runs,
				size_t first, size_t end)
{
	const struct coll_flight_timed *run = runs->record[first].run;

	remedies->before = 0;
	remedies->site = NULL;
	remedies->fit = remedies->redundancy.fitting;
	if (end - first != remedies->job->seen[0]->page.ranks)
		return;
	remedies->site = coll_report_redundancy_of(&remedies->redundancy, run);
	remedies->fit = coll_report_fit_of(&remedies->redundancy, run);
	if (remedies->fit < remedies->redundancy.fitting)
		remedies->leaf.runs[remedies->fit]++;
}

void coll_report_remedies_lost(struct report_remedies *remedies, enum coll_flight_loss_kind kind,
			       size_t index, size_t sender, double ns)
{
	const struct remedy_rank *rank = &remedies->rank[index];
	const uint32_t from = remedies->rank[sender].host;

	if (remedies->fit < remedies->redundancy.fitting && kind == COLL_FLIGHT_LOSS_LINK)
		coll_report_leaf_message(&remedies->leaf, index, sender, ns);
	else if (remedies->fit < remedies->redundancy.fitting)
		coll_report_leaf_stop(&remedies->leaf, index, ns);
	if (remedies->site)
		coll_report_saved_add(&remedies->blocks, &remedies->redundant, remedies->site->share * ns);
	coll_report_saved_add(&remedies->blocks, &remedies->host[rank->host].without, ns);
	if (from != rank->host)
		coll_report_saved_add(&remedies->blocks, &remedies->host[from].without, ns);
}

/* ---- before a call --------------------------------------------------------------- */

/* When the last ranks begin. */
struct begins {
	double last;
	uint32_t host;			/* of the last one */
	double elsewhere;		/* the last one on another host */
	double ranks, before;		/* ns that all would wait if each waited for the last one */
};

static void find_begins(const struct report_runs *runs, size_t first, size_t end, struct begins *begins)
{
	size_t i;

	*begins = (struct begins){ .last = -INFINITY, .elsewhere = -INFINITY, .ranks = end - first };
	for (i = first; i < end; i++) {
		const double began = report_began(&runs->record[i], runs->base);

		if (began > begins->last)
			begins->host = runs->record[i].host;
		begins->last = fmax(begins->last, began);
	}
	for (i = first; i < end; i++) {
		const double began = report_began(&runs->record[i], runs->base);

		begins->before += begins->last - began;
		if (runs->record[i].host != begins->host)
			begins->elsewhere = fmax(begins->elsewhere, began);
	}
}

/* Without the host: as far as the others waited for it, which a root may not have done. */
static double begin_saves(const struct report_remedies *remedies, const struct begins *begins)
{
	const double part = begins->before > 0 ? fmin(1, remedies->before / begins->before) : 1;

	return begins->ranks * part * (begins->last - begins->elsewhere);
}

static void add_held(struct report_remedies *remedies, const struct report_runs *runs, size_t first,
		     size_t end)
{
	size_t i;

	for (i = first; i < end; i++) {
		const struct report_record *record = &runs->record[i];

		remedies->host[record->host].held +=
			((double)record->run->stolen + record->run->stolen_before) * COLL_FLIGHT_TICK;
	}
}

void coll_report_remedies_end(struct report_remedies *remedies, const struct report_runs *runs,
			      size_t first, size_t end)
{
	struct begins begins;

	find_begins(runs, first, end, &begins);
	if (isfinite(begins.elsewhere) && begins.last - begins.elsewhere > runs->blur)
		coll_report_saved_add(&remedies->blocks, &remedies->host[begins.host].without,
				      begin_saves(remedies, &begins));
	if (remedies->site)
		coll_report_saved_add(&remedies->blocks, &remedies->redundant, -begins.ranks * remedies->site->price);
	add_held(remedies, runs, first, end);
}

void coll_report_remedies_end_block(struct report_remedies *remedies,
				    const struct report_took *took)
{
	coll_report_blocks_end(&remedies->blocks, took);
	coll_report_leaf_end_block(&remedies->leaf, took);
}

/* ---- all runs once more --------------------------------------------------------------- */

enum { HOSTS_TOGETHER = 4 };	/* with the most time without a core: one of them decides */

/* By numbers of hosts; UINT32_MAX: no more. */
static void most_held(const struct report_remedies *remedies, uint32_t host[HOSTS_TOGETHER])
{
	uint32_t found = 0, k, at;

	for (k = 0; k < HOSTS_TOGETHER; k++)
		host[k] = UINT32_MAX;
	for (k = 0; k < remedies->job->count; k++) {
		if (!remedies->host[k].ranks)
			continue;
		for (at = found; at && remedies->host[host[at - 1]].held < remedies->host[k].held; at--)
			if (at < HOSTS_TOGETHER)
				host[at] = host[at - 1];
		if (at < HOSTS_TOGETHER)
			host[at] = k;
		found += found < HOSTS_TOGETHER;
	}
}

/* As long as each run is where one host alone is disturbed, for the most. */
static struct report_saved saved_together(const struct report_remedies *remedies, struct report_rerun *rerun,
					  struct rerun_less *less)
{
	struct report_saved least = { .ns = INFINITY };
	uint32_t host[HOSTS_TOGETHER], k;
	size_t i;

	most_held(remedies, host);
	for (k = 0; k < HOSTS_TOGETHER && host[k] != UINT32_MAX; k++) {
		struct report_saved saved;

		for (i = 0; i < remedies->job->count; i++)
			less[i] = (struct rerun_less){ .stolen = remedies->rank[i].host != host[k] };
		saved = coll_report_rerun(rerun, less, host[k]);
		if (saved.ns < least.ns)
			least = saved;
	}
	return least;
}

static struct report_saved saved_by_part(const struct report_remedies *remedies, struct report_rerun *rerun,
					 struct rerun_less *less, bool stop)
{
	size_t i;

	for (i = 0; i < remedies->job->count; i++)
		less[i] = (struct rerun_less){ .stolen = stop ? remedies->rank[i].stop : remedies->rank[i].pin };
	return coll_report_rerun(rerun, less, RERUN_ALL_HOSTS);
}

/* ---- in the report ------------------------------------------------------------------ */

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

static void leaf_text(const struct report_remedies *remedies, struct coll_flight_remedy *remedy)
{
	const uint32_t rank = remedies->job->seen[coll_report_leaf_rank(&remedies->leaf)]->page.rank;

	if (remedy->saved > 0)
		snprintf(remedy->what, sizeof(remedy->what), "make rank %u a leaf: butterfly-leaf:late=%u", rank,
			 rank);
	else
		snprintf(remedy->what, sizeof(remedy->what), "make a rank a leaf: the model finds no gain");
}

/* With the names that are known then. */
static void remedy_text(const struct report_remedies *remedies, struct coll_flight_remedy *remedy)
{
	static const char *const words[COLL_FLIGHT_REMEDIES] = {
		"pin programs and interrupts off the ranks' CPUs", "stop a program",
		"T, redundant exchanges", "make a rank a leaf", "co-schedule: disturb all nodes at the same time",
		"leave out a node",
	};

	snprintf(remedy->what, sizeof(remedy->what), "%s", words[remedy->kind]);
	if (remedy->unknown)
		return;
	if (remedy->kind == COLL_FLIGHT_REMEDY_STOP)
		snprintf(remedy->what, sizeof(remedy->what), "stop `%s`", remedies->stopped);
	else if (remedy->kind == COLL_FLIGHT_REMEDY_REDUNDANCY)
		redundancy_text(&remedies->redundancy, remedy->what);
	else if (remedy->kind == COLL_FLIGHT_REMEDY_LEAF)
		leaf_text(remedies, remedy);
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
	case COLL_FLIGHT_REMEDY_LEAF:
		return remedies->redundancy.fitting ? NULL :
			       "no timed allreduce of 4 ranks or more is without T and leaf, and waited for messages";
	default:
		if (report->hosts < 2)
			return "the job is on one node";
		return report->clock_error < 0 ? "the nodes' clocks could not be compared" : NULL;
	}
}

static struct report_saved saved_by(const struct report_remedies *remedies, struct report_rerun *rerun,
				    struct rerun_less *less, enum coll_flight_remedy_kind kind)
{
	switch (kind) {
	case COLL_FLIGHT_REMEDY_PIN:
	case COLL_FLIGHT_REMEDY_STOP:
		return saved_by_part(remedies, rerun, less, kind == COLL_FLIGHT_REMEDY_STOP);
	case COLL_FLIGHT_REMEDY_REDUNDANCY:
		return remedies->redundant;
	case COLL_FLIGHT_REMEDY_LEAF:
		return coll_report_leaf_saved(&remedies->leaf, remedies->job, &remedies->redundancy, rerun->runs);
	case COLL_FLIGHT_REMEDY_TOGETHER:
		return saved_together(remedies, rerun, less);
	default:
		return remedies->host[worst_host(remedies)].without;
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

/* By reruns, or by what was lost in all timed runs. */
static struct report_interval remedy_interval(const struct coll_flight_report *report,
					      const struct report_rerun *rerun, struct report_saved saved,
					      const struct report_took *took, double scale,
					      enum coll_flight_remedy_kind kind)
{
	if (kind == COLL_FLIGHT_REMEDY_PIN || kind == COLL_FLIGHT_REMEDY_STOP ||
	    kind == COLL_FLIGHT_REMEDY_TOGETHER)
		return coll_report_rerun_interval(rerun, &saved, took, scale, report->seconds);
	return coll_report_interval(&saved, took, scale, report->seconds);
}

static void take_remedy(struct coll_flight_remedy *remedy, struct report_interval saved)
{
	remedy->saved = saved.mean;
	remedy->least = saved.least;
	remedy->most = saved.most;
}

int coll_report_take_remedies(struct coll_flight_report *report, const struct report_remedies *remedies,
			      struct report_rerun *rerun, const struct report_took *took, double scale)
{
	struct rerun_less *less = calloc(remedies->job->count, sizeof(*less));
	uint32_t kind;

	if (!less)
		return -ENOMEM;
	for (kind = 0; kind < COLL_FLIGHT_REMEDIES; kind++) {
		struct coll_flight_remedy *remedy = &report->remedy[kind];

		*remedy = (struct coll_flight_remedy){ .kind = kind, .least = -1, .most = -1 };
		remedy->unknown = why_unknown(report, remedies, kind);
		if (!remedy->unknown)
			take_remedy(remedy, remedy_interval(report, rerun, saved_by(remedies, rerun, less, kind),
							    took, scale, kind));
		remedy_text(remedies, remedy);
	}
	free(less);
	qsort(report->remedy, COLL_FLIGHT_REMEDIES, sizeof(*report->remedy), by_saved);
	return 0;
}
