// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The report for people: a verdict, the costs, who causes them, what to do. */
#include <string.h>

#include "algo/common/algo.h"
#include "report.h"

enum { LOSSES_SHOWN = 6, NODES_SHOWN = 4, NAMES_SHOWN = 3, SITES_SHOWN = 6, RANKS_SHOWN = 5, ADVICE_SHOWN = 3 };

/* Of the job's time, and of the largest loss, below which a loss is not worth a word. */
static const double worth = 0.01, beside = 0.1;

bool coll_flight_is_worth(const struct coll_flight_report *report,
			  const struct coll_flight_loss *loss)
{
	return loss->cost >= worth * report->seconds && loss->cost >= beside * report->loss[0].cost;
}

/* s between two looks, of which a report warns. */
static const double rare = 2;

static const char *time_text(double seconds, char text[24])
{
	static const struct {
		double least;
		const char *unit;
	} units[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" }, { 1e-9, "ns" } };
	size_t i = 0;

	while (i < 3 && seconds < units[i].least)
		i++;
	snprintf(text, 24, "%.3g %s", seconds / units[i].least, units[i].unit);
	return text;
}

/* Per cent of the job's time. */
static double of_job(const struct coll_flight_report *report, double seconds)
{
	return report->seconds > 0 ? 100 * seconds / report->seconds : 0;
}

static const char *host_of_rank(const struct coll_flight_job *job, uint32_t rank)
{
	const struct coll_flight_seen *seen = coll_flight_of(job, rank);

	return seen ? seen->page.host : "?";
}

/* ---- sentences ----------------------------------------------------------- */

static const char *senders_text(const struct coll_flight_loss *loss, char text[32])
{
	if (loss->from == COLL_FLIGHT_NO_RANK)
		snprintf(text, 32, "several ranks");
	else
		snprintf(text, 32, "rank %u", loss->from);
	return text;
}

static const char *loss_text(const struct coll_flight_report *report,
			     const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	char by[24], cost[24], all[24], from[32];

	time_text(loss->by, by);
	time_text(loss->cost, cost);
	time_text(report->seconds, all);
	if (loss->kind == COLL_FLIGHT_LOSS_LATE)
		snprintf(text, bytes, "rank %u is late in %.0f %% of calls by %s: %s of %s",
			 loss->rank, 100 * loss->share, by, cost, all);
	else if (loss->kind == COLL_FLIGHT_LOSS_STOLEN)
		snprintf(text, bytes, "rank %u had no core in or before %.0f %% of calls, for %s: %s of %s",
			 loss->rank, 100 * loss->share, by, cost, all);
	else
		snprintf(text, bytes, "messages from %s to rank %u are late in %.0f %% of calls by "
			 "%s: %s of %s", senders_text(loss, from), loss->rank, 100 * loss->share,
			 by, cost, all);
	return text;
}

/* What is lost and has no name is not left out of the sentence. */
static void add_unknown(const struct coll_flight_report *report, char *text, size_t bytes)
{
	char lost[24];

	if (report->unknown >= worth * report->seconds && report->unknown > 0 &&
	    (!report->losses || report->unknown >= report->loss[0].cost))
		coll_flight_say(text, bytes, " For %s (%.2g %%) ranks waited, and for whom or "
			 "what is not known.", time_text(report->unknown, lost),
			 of_job(report, report->unknown));
}

const char *coll_flight_cut_text(const struct coll_flight_report *report, char text[160])
{
	if (!report->cut)
		return NULL;
	snprintf(text, 160, "A node has more ranks than are read at once: %u of %u are in this report, and no "
		 "others of that node.", report->here, report->ranks);
	return text;
}

const char *coll_flight_verdict(const struct coll_flight_report *report, char *text, size_t bytes)
{
	const struct coll_flight_loss *loss = report->losses ? &report->loss[0] : NULL;
	char words[160], cause[300];

	if (!report->sites && !report->timed)
		snprintf(text, bytes, "No collective has ended, so there is nothing to account for.");
	else if (!loss || !coll_flight_is_worth(report, loss))
		snprintf(text, bytes, "Collectives take %.3g %% of the time, and no rank, core or link "
			 "costs as much as %g %% of it.", of_job(report, report->inside),
			 100 * worth);
	else
		snprintf(text, bytes, "Collectives take %.3g %% of the time; most is lost because "
			 "%s (%.2g %%).", of_job(report, report->inside),
			 loss_text(report, loss, words, sizeof(words)), of_job(report, loss->cost));
	if (loss && coll_flight_is_worth(report, loss) &&
	    coll_flight_because_text(loss, cause, sizeof(cause)))
		coll_flight_say(text, bytes, " Cause: %s.", cause);
	add_unknown(report, text, bytes);
	return text;
}

/* Where the cause is not known. */
static void usual_advice(const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	char from[32];

	if (loss->kind == COLL_FLIGHT_LOSS_LATE)
		snprintf(text, bytes, "Give rank %u less to do, or a faster or quieter node. "
			 "`coll doctor` looks at its node.", loss->rank);
	else if (loss->kind == COLL_FLIGHT_LOSS_STOLEN)
		snprintf(text, bytes, "Leave rank %u a core: fewer ranks or threads on its node, "
			 "`coll run --bind core`, or other programs off its cores (collnoise pin). "
			 "`coll run --report` and `coll report --watch 5s` name the programs.",
			 loss->rank);
	else
		snprintf(text, bytes, "Look at the way from %s to rank %u (`coll doctor --hosts`). "
			 "T = 2 tolerates late messages (option noise); if they are of one rank, or to it, alone, so does "
			 "a leaf (option late); what would be saved says of both.", senders_text(loss, from), loss->rank);
}

const char *coll_flight_advice(const struct coll_flight_report *report,
			       const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	static const char *const without[COLL_FLIGHT_LOSS_KINDS] = {
		"Were it no later than the next one", "Had it a core", "With messages as fast as the others",
	};
	char saved[24], least[24], most[24];

	if (!coll_flight_because_advice(loss, text, bytes))
		usual_advice(loss, text, bytes);
	coll_flight_say(text, bytes, " %s, %s (%.2g %%) would be saved", without[loss->kind],
			time_text(loss->saved, saved), of_job(report, loss->saved));
	if (loss->saved_most >= 0)
		coll_flight_say(text, bytes, ", from %s to %s by the spread of the timed calls",
				time_text(loss->saved_least, least),
				time_text(loss->saved_most, most));
	coll_flight_say(text, bytes, ".");
	return text;
}

/* ---- tables -------------------------------------------------------------- */

static void print_line(const struct coll_flight_report *report, const char *what, double seconds,
		       FILE *to)
{
	fprintf(to, "%-41s %11.3f %7.1f %%\n", what, seconds, of_job(report, seconds));
}

static void print_costs(const struct coll_flight_report *report, FILE *to)
{
	double lost = report->unknown + report->waiting;
	uint32_t kind;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		lost += report->lost[kind];
	fprintf(to, "\n%-41s %11s %9s\n", "mean of the ranks", "seconds", "of job");
	print_line(report, "in collectives", report->inside, to);
	print_line(report, "  waiting for late ranks", report->lost[COLL_FLIGHT_LOSS_LATE], to);
	print_line(report, "  ranks without a core", report->lost[COLL_FLIGHT_LOSS_STOLEN], to);
	print_line(report, "  late messages", report->lost[COLL_FLIGHT_LOSS_LINK], to);
	print_line(report, "  in a call that has not ended", report->waiting, to);
	print_line(report, "  waiting, not known for what", report->unknown, to);
	print_line(report, "  all else: messages and arithmetic",
		   report->inside > lost ? report->inside - lost : 0, to);
	print_line(report, "the least possible, by the model or seen", report->least, to);
}

const char *coll_flight_waits_for(const struct coll_flight_report *report,
				  const struct coll_flight_job *job, char text[COLL_FLIGHT_TEXT])
{
	struct coll_flight_cause cause;

	if (!(report->waiting > 0) || report->waiting < worth * report->seconds)
		return NULL;
	coll_flight_find_cause(job, &cause);
	if (cause.why == COLL_FLIGHT_NO_CAUSE)
		return NULL;
	memcpy(text, cause.text, COLL_FLIGHT_TEXT);
	return text;
}

static void print_waits(const struct coll_flight_report *report, const struct coll_flight_job *job,
			FILE *to)
{
	char text[COLL_FLIGHT_TEXT];

	if (coll_flight_waits_for(report, job, text))
		fprintf(to, "what the ranks wait for now: %s\n", text);
}

static void print_losses(const struct coll_flight_report *report, const struct coll_flight_job *job,
			 FILE *to)
{
	static const char *const words[COLL_FLIGHT_LOSS_KINDS] = {
		"late", "without a core", "late messages to it",
	};
	uint32_t i;

	if (!report->losses)
		return;
	fprintf(to, "\n%-9s %-16s %-19s %8s %10s %9s %9s  %s\n", "who", "node", "what", "of calls",
		"by", "cost s", "saved s", "most in");
	for (i = 0; i < report->losses && i < LOSSES_SHOWN; i++) {
		const struct coll_flight_loss *loss = &report->loss[i];
		char by[24], who[24], from[24] = "";

		snprintf(who, sizeof(who), "rank %u", loss->rank);
		if (loss->from != COLL_FLIGHT_NO_RANK)
			snprintf(from, sizeof(from), " from rank %u", loss->from);
		fprintf(to, "%-9s %-16.16s %-19s %6.0f %% %10s %9.3f %9.3f  %s%s\n", who,
			host_of_rank(job, loss->rank), words[loss->kind], 100 * loss->share,
			time_text(loss->by, by), loss->cost, loss->saved,
			coll_collective_names[loss->collective], from);
	}
}

/* As far as a name took a hundredth of the node's loss. */
const char *coll_flight_names_text(const struct coll_flight_node *node, uint32_t most, char *text,
				   size_t bytes)
{
	char seconds[24];
	uint32_t i;

	*text = 0;
	for (i = 0; i < node->names && i < most; i++)
		if (node->name[i].seconds >= worth * node->cost)
			coll_flight_say(text, bytes, "%s%s %s", i ? ", " : "", node->name[i].text,
					time_text(node->name[i].seconds, seconds));
	return text;
}

static void print_nodes(const struct coll_flight_report *report, FILE *to)
{
	char names[COLL_FLIGHT_ADVICE];
	uint32_t i;

	if (!report->losses)
		return;
	fprintf(to, "\n%-16s %9s %9s %9s %9s %9s  %s\n", "node", "cost s", "of job", "late s",
		"no core s", "links s", "by");
	for (i = 0; i < report->nodes && i < NODES_SHOWN; i++) {
		const struct coll_flight_node *node = &report->node[i];

		if (i && !(node->cost > 0))
			break;
		fprintf(to, "%-16.16s %9.3f %7.1f %% %9.3f %9.3f %9.3f  %s\n", node->host, node->cost,
			of_job(report, node->cost), node->lost[COLL_FLIGHT_LOSS_LATE],
			node->lost[COLL_FLIGHT_LOSS_STOLEN], node->lost[COLL_FLIGHT_LOSS_LINK],
			coll_flight_names_text(node, NAMES_SHOWN, names, sizeof(names)));
	}
	if (report->nodes > i)
		fprintf(to, "... and %u other nodes, of less\n", report->nodes - i);
}

/* Looks at many threads take long, and then they are rare. */
const char *coll_flight_rare_looks(const struct coll_flight_report *report, char text[160])
{
	if (report->look_pause > rare)
		snprintf(text, 160, "too many threads to look at: looks every %.3g s, so what runs for "
			 "shorter may have no name", report->look_pause);
	else if (report->unlooked)
		snprintf(text, 160, "ranks were looked at once alone, by too many threads or in too "
			 "short a time: who had their cores is not known");
	else
		return NULL;
	return text;
}

static void print_rare_looks(const struct coll_flight_report *report, FILE *to)
{
	char text[160];

	if (coll_flight_rare_looks(report, text))
		fprintf(to, "%s\n", text);
}

/* coll.ko's counts are exact; what it counted only in part is not. */
static const char *observed_by(const struct coll_flight_observed *observed)
{
	if (observed->source != COLL_FLIGHT_BY_COLLD)
		return "";
	return observed->counted >= (observed->until - observed->since) / 10 * 9 ? ", by colld, counted" : ", by colld";
}

/* Of the losses above, what is behind them. */
static void print_causes(const struct coll_flight_report *report, FILE *to)
{
	char text[COLL_FLIGHT_ADVICE], all[24];
	uint32_t i, causes = 0;

	if (!(report->observed > 0))
		return;
	fprintf(to, "\ncauses, by looks from outside in %s (they took %.0f ppm of a core):\n",
		time_text(report->observed, all), 1e6 * report->observed_cost);
	for (i = 0; i < report->losses && i < LOSSES_SHOWN; i++) {
		const struct coll_flight_loss *loss = &report->loss[i];

		if (!coll_flight_is_worth(report, loss) ||
		    !coll_flight_because_text(loss, text, sizeof(text)))
			continue;
		causes++;
		fprintf(to, "- rank %u (node %s, CPU %u%s): %s\n", loss->rank,
			loss->seen->page.host, loss->seen->observed.cpu,
			observed_by(&loss->seen->observed), text);
	}
	if (!causes)
		fprintf(to, "- none: nothing was seen behind a loss that is worth a line\n");
}

/* Of calls by auto alone: who names an algorithm has chosen himself. */
static void print_regret(const struct coll_flight_report *report, FILE *to)
{
	const double times = report->by_auto[COLL_FLIGHT_REGRET_BY_TIMES],
		     model = report->by_auto[COLL_FLIGHT_REGRET_BY_MODEL],
		     all = times + model + report->by_auto[COLL_FLIGHT_REGRET_NOT_KNOWN];
	char text[24];

	if (!(all > 0))
		return;
	fprintf(to, "regret of auto:");
	if (times > 0)
		fprintf(to, " %s (%.2g %%) by the times of the job's own calls, for %.0f %% of those by "
			"auto;", time_text(report->regret[COLL_FLIGHT_REGRET_BY_TIMES], text),
			of_job(report, report->regret[COLL_FLIGHT_REGRET_BY_TIMES]),
			100 * times / all);
	if (model > 0)
		fprintf(to, " %s (%.2g %%) by the model alone, for %.0f %%;", time_text(report->regret[COLL_FLIGHT_REGRET_BY_MODEL], text),
			of_job(report, report->regret[COLL_FLIGHT_REGRET_BY_MODEL]),
			100 * model / all);
	fprintf(to, " not known for %.0f %%%s\n", 100 * (all - times - model) / all,
		all > times + model ? ": made in one way only, or seldom timed in another" : "");
}

/* "" of all ranks. */
static const char *group_text(const struct coll_flight_report *report,
			      const struct coll_flight_site *site, char text[32])
{
	*text = 0;
	if (site->ranks && site->ranks < report->ranks)
		snprintf(text, 32, "  groups of %u", site->ranks);
	return text;
}

static void print_sites(const struct coll_flight_report *report, FILE *to)
{
	char mean[24];
	uint32_t i;

	if (!report->sites)
		return;
	fprintf(to, "\n%-14s %-20s %9s %11s %10s %10s %10s\n", "call", "algorithm", "bytes", "calls",
		"mean", "shortest", "model");
	for (i = 0; i < report->sites && i < SITES_SHOWN; i++) {
		const struct coll_flight_site *site = &report->site[i];
		char least[24], model[24] = "?", group[32];

		if (site->predicted > 0)
			time_text(site->predicted, model);
		fprintf(to, "%-14s %-20.20s %9llu %11llu %10s %10s %10s%s\n",
			coll_collective_names[site->collective], site->algo,
			(unsigned long long)site->bytes,
			(unsigned long long)site->sum.runs / report->here,
			time_text(site->sum.ns / 1e9 / site->sum.runs, mean),
			site->shortest > 0 ? time_text(site->shortest, least) : "?", model,
			group_text(report, site, group));
	}
	print_regret(report, to);
	if (report->past.runs)
		fprintf(to, "... and %llu earlier calls that have left the record, of %s in the mean\n",
			(unsigned long long)report->past.runs / report->here,
			time_text(report->past.ns / 1e9 / report->past.runs, mean));
}

/* By what the kernel says: also outside of calls. */
static void print_cores(const struct coll_flight_report *report, const struct coll_flight_job *job,
			FILE *to)
{
	size_t i, shown = 0;

	for (i = 0; i < job->count && shown < RANKS_SHOWN; i++) {
		const struct coll_flight_page *page = &job->seen[i]->page;
		char text[24];

		if (coll_flight_delayed(page) < worth * report->seconds)
			continue;
		fprintf(to, "%s %u (%s, on %s)", shown++ ? "," : "\nready to run without a core: rank",
			page->rank, time_text(coll_flight_delayed(page), text), page->host);
	}
	if (shown)
		fprintf(to, "%s\n", report->observed > 0 ? "" :
			"; the kernel does not say for whom: coll report --watch does");
	for (i = shown = 0; i < job->count && shown < RANKS_SHOWN; i++) {
		const struct coll_flight_page *page = &job->seen[i]->page;
		char text[24];

		if (page->injected)
			fprintf(to, "%s %u (%s)", shown++ ? "," : "stopped by option inject: rank",
				page->rank, time_text(page->injected / 1e9, text));
	}
	if (shown)
		fprintf(to, "\n");
}

/* "ring in segments of 65536" */
static const char *choice_text(const char *algo, uint64_t segment, char text[80])
{
	if (segment)
		snprintf(text, 80, "%.31s in segments of %llu", algo, (unsigned long long)segment);
	else
		snprintf(text, 80, "%.31s", algo);
	return text;
}

/* "" where the choice is as good as what it was compared with. */
const char *coll_flight_regret_text(const struct coll_flight_report *report,
				    const struct coll_flight_site *site, char *text, size_t bytes)
{
	const struct coll_flight_regret *regret = &site->regret;
	char chosen[80], better[80], took[24], instead[24], seconds[24], least[24], most[24];

	*text = 0;
	if (!(regret->seconds > 0) ||
	    (regret->by == COLL_FLIGHT_REGRET_BY_MODEL && site->predicted <= 1.05 * site->best))
		return text;
	choice_text(site->algo, site->segment, chosen);
	coll_flight_say(text, bytes, "%s of %llu bytes: %s was %s and takes ",
			coll_collective_names[site->collective], (unsigned long long)site->bytes,
			chosen, site->asked ? "asked for by name" : "chosen by auto");
	if (regret->by == COLL_FLIGHT_REGRET_BY_MODEL)
		coll_flight_say(text, bytes, "%s by the model; the choice without a name takes %s.",
				time_text(site->predicted, took), time_text(site->best, instead));
	else
		coll_flight_say(text, bytes, "%s by the times of the job's own calls; %s, of %llu "
				"bytes there, takes %s. With it, %s (%.2g %%) would be saved, from %s "
				"to %s by the spread of the times.",
				time_text(site->alone / site->alones, took),
				choice_text(regret->algo, regret->segment, better),
				(unsigned long long)regret->bytes,
				time_text(regret->time, instead), time_text(regret->seconds, seconds),
				of_job(report, regret->seconds), time_text(regret->least, least),
				time_text(regret->most, most));
	return text;
}

static void print_choice(const struct coll_flight_report *report, FILE *to)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	for (i = 0; i < report->sites && i < SITES_SHOWN; i++)
		if (*coll_flight_regret_text(report, &report->site[i], text, sizeof(text)))
			fprintf(to, "- %s\n", text);
}

static void print_advice(const struct coll_flight_report *report, FILE *to)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i;

	fprintf(to, "\nwhat to do:\n");
	for (i = 0; i < report->losses && i < ADVICE_SHOWN; i++)
		if (coll_flight_is_worth(report, &report->loss[i]))
			fprintf(to, "- %s\n", coll_flight_advice(report, &report->loss[i], text,
								 sizeof(text)));
	if (!report->losses || !coll_flight_is_worth(report, &report->loss[0]))
		fprintf(to, "- Nothing that this report can name.\n");
	print_choice(report, to);
}

/* "without shared cores (2 ranks)" */
const char *coll_flight_without_text(const struct coll_flight_without *without, char text[COLL_FLIGHT_WORDS])
{
	static const char *const words[COLL_FLIGHT_BECAUSES] = {
		[COLL_FLIGHT_BECAUSE_TASK] = "other programs on the ranks' CPUs",
		[COLL_FLIGHT_BECAUSE_OWN] = "the ranks' own other threads",
		[COLL_FLIGHT_BECAUSE_SHARED] = "ranks that share a core",
		[COLL_FLIGHT_BECAUSE_LIMIT] = "limits of cgroups (cpu.max)",
		[COLL_FLIGHT_BECAUSE_INTERRUPTS] = "interrupts and softirqs",
		[COLL_FLIGHT_BECAUSE_STEAL] = "what the machines' hosts take (steal)",
		[COLL_FLIGHT_BECAUSE_INJECTED] = "injected noise",
		[COLL_FLIGHT_BECAUSE_STOPPED] = "signals that stop ranks",
		[COLL_FLIGHT_BECAUSE_DISK] = "waits for a disk",
		[COLL_FLIGHT_BECAUSE_ASLEEP] = "sleep before calls",
		[COLL_FLIGHT_BECAUSE_WORK] = "more work than others have",
		[COLL_FLIGHT_BECAUSE_LINK] = "late messages",
	};

	snprintf(text, COLL_FLIGHT_WORDS, "without %s (%u rank%s)", words[without->because], without->ranks,
		 without->ranks == 1 ? "" : "s");
	return text;
}

static void print_saved(const struct coll_flight_report *report, const char *what, double saved,
			double least, double most, FILE *to)
{
	char from[24], until[24];

	fprintf(to, "%-60s %9.3f %7.1f %%", what, saved, of_job(report, saved));
	if (most > 0)
		fprintf(to, "  %s and %s (%.2g and %.2g %%)", time_text(least, from), time_text(most, until),
			of_job(report, least), of_job(report, most));
	fprintf(to, "%s\n", most < 0 ? "  too few timed calls to say" : "");
}

static void print_remedies(const struct coll_flight_report *report, FILE *to)
{
	char text[COLL_FLIGHT_WORDS];
	uint32_t i;

	if (!report->losses)
		return;
	fprintf(to, "\n%-60s %9s %9s  %s\n", "what would be saved", "seconds", "of job", "between");
	for (i = 0; i < report->withouts; i++)
		print_saved(report, coll_flight_without_text(&report->without[i], text),
			    report->without[i].saved, report->without[i].least, report->without[i].most, to);
	for (i = 0; i < COLL_FLIGHT_REMEDIES; i++) {
		const struct coll_flight_remedy *remedy = &report->remedy[i];

		if (remedy->unknown)
			fprintf(to, "%-60s not known: %s\n", remedy->what, remedy->unknown);
		else
			print_saved(report, remedy->what, remedy->saved, remedy->least, remedy->most, to);
	}
}

static void print_trust(const struct coll_flight_report *report, FILE *to)
{
	char text[24], all[24];

	fprintf(to, "\n%u of about %.0f calls were timed on all ranks; what was lost is scaled from these.",
		report->timed, report->calls);
	if (report->skewed)
		fprintf(to, " They took %s in the mean, and all calls %s: they are no sample of these, so "
			"no rank is named.", time_text(report->timed_mean, text),
			time_text(report->mean, all));
	if (report->here < report->ranks)
		fprintf(to, " %u of %u ranks have no page here: what they wait for is not known.",
			report->ranks - report->here, report->ranks);
	if (report->hosts > 1 && report->clock_error < 0)
		fprintf(to, " The hosts' clocks could not be compared by messages.");
	else if (report->hosts > 1)
		fprintf(to, " The hosts' clocks are compared to %s.",
			time_text(report->clock_error, text));
	fprintf(to, "\n");
}

void coll_flight_report_print(const struct coll_flight_report *report,
			      const struct coll_flight_job *job, FILE *to)
{
	char text[COLL_FLIGHT_ADVICE], all[24];

	fprintf(to, "job %s: %s, %u rank%s on %u node%s, %s\n", report->page->job,
		report->page->program, report->ranks, report->ranks == 1 ? "" : "s", report->hosts,
		report->hosts == 1 ? "" : "s", time_text(report->seconds, all));
	fprintf(to, "%s\n", coll_flight_verdict(report, text, sizeof(text)));
	if (coll_flight_cut_text(report, text))
		fprintf(to, "%s\n", text);
	print_waits(report, job, to);
	print_costs(report, to);
	print_losses(report, job, to);
	print_nodes(report, to);
	print_causes(report, to);
	print_rare_looks(report, to);
	print_sites(report, to);
	print_cores(report, job, to);
	print_advice(report, to);
	print_remedies(report, to);
	print_trust(report, to);
}
