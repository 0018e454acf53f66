// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What is behind a loss, by what an observer saw of the rank: who had its core, or what it did
 * outside of calls while the other ranks did not.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* Of the time that a rank was observed: less is no cause. */
static const double because_least = 0.01;
/* Of the part of the job that a loss is: of less seen time than this it is not the loss' cause. */
static const double evidence_least = 0.25;
/* Of the looks at a rank: a message is late because an end of it is stopped. */
static const double stopped_least = 0.05;

const char *const coll_flight_because_names[COLL_FLIGHT_BECAUSES] = {
	"not-known", "task", "own-threads", "shared-core", "cpu-limit", "interrupts", "steal", "injected",
	"stopped",   "disk", "asleep",	    "work",	 "link",
};

const char *const coll_flight_taker_names[COLL_FLIGHT_TAKER_KINDS] = {
	"task", "rank", "cpu-limit", "interrupts", "softirqs", "steal", "others", "own-threads",
};

/* Parts of the time that a rank was observed. */
struct because_parts {
	double of[COLL_FLIGHT_BECAUSES];
};

/* ---- one rank -------------------------------------------------------------- */

bool coll_flight_is_observed(const struct coll_flight_seen *seen)
{
	return seen && seen->observed.until > seen->observed.since && seen->observed.looks;
}

static double observed_ns(const struct coll_flight_observed *observed)
{
	return observed->until - observed->since;
}

enum coll_flight_because coll_flight_because_of(const struct coll_flight_taker *taker)
{
	switch (taker->kind) {
	case COLL_FLIGHT_TAKER_OWN:
		return COLL_FLIGHT_BECAUSE_OWN;
	case COLL_FLIGHT_TAKER_RANK:
		return COLL_FLIGHT_BECAUSE_SHARED;
	case COLL_FLIGHT_TAKER_LIMIT:
		return COLL_FLIGHT_BECAUSE_LIMIT;
	case COLL_FLIGHT_TAKER_INTERRUPTS:
	case COLL_FLIGHT_TAKER_SOFTIRQS:
		return COLL_FLIGHT_BECAUSE_INTERRUPTS;
	case COLL_FLIGHT_TAKER_STEAL:
		return COLL_FLIGHT_BECAUSE_STEAL;
	default:
		return COLL_FLIGHT_BECAUSE_TASK;
	}
}

static double looks_part(const struct coll_flight_observed *observed, enum coll_flight_doing doing)
{
	return (double)observed->outside[doing] / observed->looks;
}

/* Work is what it ran outside of calls and nobody took from it. */
static void find_parts(const struct coll_flight_observed *observed, struct because_parts *parts)
{
	double taken = 0;
	uint32_t i;

	*parts = (struct because_parts){ .of = { 0 } };
	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		const struct coll_flight_taker *taker = &observed->taker[i];
		const double part = taker->ns / observed_ns(observed);

		parts->of[coll_flight_because_of(taker)] += part;
		taken += part;
	}
	parts->of[COLL_FLIGHT_BECAUSE_STOPPED] = looks_part(observed, COLL_FLIGHT_DOING_STOP);
	parts->of[COLL_FLIGHT_BECAUSE_DISK] = looks_part(observed, COLL_FLIGHT_DOING_DISK);
	parts->of[COLL_FLIGHT_BECAUSE_ASLEEP] = looks_part(observed, COLL_FLIGHT_DOING_SLEEP);
	parts->of[COLL_FLIGHT_BECAUSE_WORK] = looks_part(observed, COLL_FLIGHT_DOING_RUN) - taken;
}

static double stopped_part(const struct coll_flight_seen *seen)
{
	const struct coll_flight_observed *observed = seen ? &seen->observed : NULL;

	return coll_flight_is_observed(seen) ? (double)(observed->outside[COLL_FLIGHT_DOING_STOP] +
					    observed->within[COLL_FLIGHT_DOING_STOP]) /
					   observed->looks : 0;
}

/* ---- of a loss --------------------------------------------------------------- */

static enum coll_flight_because largest_of(const struct because_parts *parts, uint32_t from,
					   uint32_t end, double least)
{
	uint32_t largest = COLL_FLIGHT_BECAUSE_NOT_KNOWN, i;

	for (i = from; i < end; i++)
		if (parts->of[i] >= least) {
			largest = i;
			least = parts->of[i];
		}
	return largest;
}

/* Injected noise is in the rank's own account; of all else the kernel has one. */
static enum coll_flight_because because_no_core(const struct coll_flight_seen *seen, double least)
{
	struct because_parts parts;

	if (seen->page.injected > seen->page.delayed)
		return COLL_FLIGHT_BECAUSE_INJECTED;
	if (!coll_flight_is_observed(seen))
		return COLL_FLIGHT_BECAUSE_NOT_KNOWN;
	find_parts(&seen->observed, &parts);
	return largest_of(&parts, COLL_FLIGHT_BECAUSE_TASK, COLL_FLIGHT_BECAUSE_INJECTED,
			  least > 1e-9 ? least : 1e-9);
}

/* By how much more than the other ranks, in the mean, it did each of them. */
static enum coll_flight_because because_late(const struct coll_flight_job *job,
					     const struct coll_flight_seen *seen, double least)
{
	struct because_parts own, other, mean = { .of = { 0 } };
	uint32_t others = 0, k;
	size_t i;

	if (!coll_flight_is_observed(seen))
		return COLL_FLIGHT_BECAUSE_NOT_KNOWN;
	for (i = 0; i < job->count; i++) {
		if (job->seen[i] == seen || !coll_flight_is_observed(job->seen[i]))
			continue;
		find_parts(&job->seen[i]->observed, &other);
		others++;
		for (k = 0; k < COLL_FLIGHT_BECAUSES; k++)
			mean.of[k] += (other.of[k] - mean.of[k]) / others;
	}
	find_parts(&seen->observed, &own);
	for (k = 0; k < COLL_FLIGHT_BECAUSES; k++)
		own.of[k] -= mean.of[k];
	return largest_of(&own, COLL_FLIGHT_BECAUSE_TASK, COLL_FLIGHT_BECAUSE_LINK,
			  least > because_least ? least : because_least);
}

enum { CPUS = 1024 };

/* As 0-3,8. What has no room is left out with all that follows: then it is not known. */
static void print_cpus(const bool has[CPUS], char *text, size_t bytes)
{
	uint32_t first, end;

	*text = 0;
	for (first = 0; first < CPUS; first = end + 1) {
		for (end = first; end < CPUS && has[end]; end++)
			;
		if (end > first + 1)
			coll_flight_say(text, bytes, "%s%u-%u", *text ? "," : "", first, end - 1);
		else if (end > first)
			coll_flight_say(text, bytes, "%s%u", *text ? "," : "", first);
	}
	if (strlen(text) + 1 == bytes)
		*text = 0;
}

/* Of ranks that may use one CPU alone; if any may use more, there is no such list. */
bool coll_flight_find_cpus(const struct coll_flight_job *job, const struct coll_flight_seen *seen,
			   char *text, size_t bytes)
{
	bool has[CPUS] = { false };
	uint32_t count = 0;
	size_t i;

	*text = 0;
	for (i = 0; i < job->count; i++) {
		const struct coll_flight_observed *observed = &job->seen[i]->observed;

		if (strcmp(job->seen[i]->page.host, seen->page.host))
			continue;
		if (!coll_flight_is_observed(job->seen[i]) || observed->cpus != 1 ||
		    observed->cpu >= CPUS)
			return false;
		count += !has[observed->cpu];
		has[observed->cpu] = true;
	}
	print_cpus(has, text, bytes);
	return count >= seen->observed.online;
}

void coll_flight_find_because(const struct coll_flight_job *job, double seconds,
			      struct coll_flight_loss *loss)
{
	const double least = seconds > 0 ? evidence_least * loss->cost / seconds : 0;
	const struct coll_flight_seen *sender = loss->from == COLL_FLIGHT_NO_RANK ? NULL :
						coll_flight_of(job, loss->from);

	loss->seen = coll_flight_of(job, loss->rank);
	if (!loss->seen)
		return;
	loss->all_cpus = coll_flight_find_cpus(job, loss->seen, loss->cpus, sizeof(loss->cpus));
	switch (loss->kind) {
	case COLL_FLIGHT_LOSS_LATE:
		loss->because = because_late(job, loss->seen, least);
		break;
	case COLL_FLIGHT_LOSS_STOLEN:
		loss->because = because_no_core(loss->seen, least);
		break;
	default:
		loss->because = stopped_part(loss->seen) >= stopped_least ||
				stopped_part(sender) >= stopped_least ?
					COLL_FLIGHT_BECAUSE_STOPPED : COLL_FLIGHT_BECAUSE_LINK;
	}
}

/* ---- in words ------------------------------------------------------------------ */

void coll_flight_say(char *text, size_t bytes, const char *format, ...)
{
	const size_t length = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	if (length < bytes)
		vsnprintf(text + length, bytes - length, format, arguments);
	va_end(arguments);
}

const char *coll_flight_taker_text(const struct coll_flight_taker *taker,
				   char text[COLL_FLIGHT_WORDS])
{
	static const char *const words[COLL_FLIGHT_TAKER_KINDS] = {
		[COLL_FLIGHT_TAKER_INTERRUPTS] = "interrupts",
		[COLL_FLIGHT_TAKER_SOFTIRQS] = "softirqs",
		[COLL_FLIGHT_TAKER_STEAL] = "the machine's host (steal)",
		[COLL_FLIGHT_TAKER_OTHERS] =
			"programs that cannot be seen from here or are too short-lived",
		[COLL_FLIGHT_TAKER_OWN] = "its own threads",
	};

	if (taker->kind == COLL_FLIGHT_TAKER_TASK)
		snprintf(text, COLL_FLIGHT_WORDS, *taker->cgroup ? "`%s` (cgroup %s)" : "`%s`%s", taker->name,
			 taker->cgroup);
	else if (taker->kind == COLL_FLIGHT_TAKER_RANK && taker->id == COLL_FLIGHT_NO_RANK)
		snprintf(text, COLL_FLIGHT_WORDS, "other ranks of this job");
	else if (taker->kind == COLL_FLIGHT_TAKER_RANK)
		snprintf(text, COLL_FLIGHT_WORDS, "rank %u of this job", taker->id);
	else if (taker->kind == COLL_FLIGHT_TAKER_LIMIT)
		snprintf(text, COLL_FLIGHT_WORDS, "the limit (cpu.max) of cgroup %s", taker->cgroup);
	else
		snprintf(text, COLL_FLIGHT_WORDS, "%s%s%s%s",
			 taker->kind < COLL_FLIGHT_TAKER_KINDS ? words[taker->kind] : "?",
			 *taker->name ? " (mostly " : "", taker->name, *taker->name ? ")" : "");
	return text;
}

const char *coll_flight_taker_name(const struct coll_flight_taker *taker,
				   char text[COLL_FLIGHT_WORDS])
{
	struct coll_flight_taker named = *taker;

	if (taker->kind == COLL_FLIGHT_TAKER_OTHERS)
		snprintf(text, COLL_FLIGHT_WORDS, "programs that cannot be seen");
	else if (taker->kind == COLL_FLIGHT_TAKER_OWN)
		snprintf(text, COLL_FLIGHT_WORDS, "ranks' own threads");
	else if (taker->kind == COLL_FLIGHT_TAKER_STEAL)
		snprintf(text, COLL_FLIGHT_WORDS, "steal");
	else if (taker->kind == COLL_FLIGHT_TAKER_LIMIT)
		snprintf(text, COLL_FLIGHT_WORDS, "cpu.max of %s", taker->cgroup);
	else {
		*named.cgroup = 0;
		coll_flight_taker_text(&named, text);
	}
	return text;
}

bool coll_flight_is_by_takers(const struct coll_flight_loss *loss)
{
	return loss->seen && loss->because >= COLL_FLIGHT_BECAUSE_TASK &&
	       loss->because <= COLL_FLIGHT_BECAUSE_STEAL;
}

double coll_flight_taken_ns(const struct coll_flight_observed *observed)
{
	double taken = 0;
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_TAKERS; i++)
		taken += observed->taker[i].ns;
	return taken;
}

static bool is_interrupt(const struct coll_flight_taker *taker)
{
	const enum coll_flight_because because = coll_flight_because_of(taker);

	return because == COLL_FLIGHT_BECAUSE_INTERRUPTS || because == COLL_FLIGHT_BECAUSE_STEAL;
}

/* *own: what interrupts took while the rank had its core, so that it did not wait for one. Returns all of theirs. */
static double interrupts_ns(const struct coll_flight_observed *observed, double *own)
{
	const double taken = coll_flight_taken_ns(observed);
	double all = 0;
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_TAKERS; i++)
		if (is_interrupt(&observed->taker[i]))
			all += observed->taker[i].ns;
	*own = observed->waited && observed->waited < taken ? taken - observed->waited : 0;
	*own = *own < all ? *own : all;
	return all;
}

double coll_flight_part_of_waited(const struct coll_flight_observed *observed,
				  const struct coll_flight_taker *taker)
{
	double own;
	const double taken = coll_flight_taken_ns(observed), interrupts = interrupts_ns(observed, &own);
	const double ns = is_interrupt(taker) && own > 0 ? taker->ns * (1 - own / interrupts) : taker->ns;

	return taken > own ? ns / (taken - own) : 0;
}

double coll_flight_part_of_ran(const struct coll_flight_observed *observed)
{
	double own;

	interrupts_ns(observed, &own);
	return !(own > 0) ? 0 : own < observed->ran ? own / observed->ran : 1;
}

static const char *act_text(const struct coll_flight_taker *taker)
{
	return taker->flags & COLL_FLIGHT_TAKER_MOVED ? ", until colld moved it away" :
	       taker->flags & COLL_FLIGHT_TAKER_HELD  ? ", less since colld holds it back" :
							"";
}

/* Who took at least 2 % each, as far as the text has room. */
static void say_takers(const struct coll_flight_observed *observed, char *text, size_t bytes)
{
	const double taken = coll_flight_taken_ns(observed);
	char one[COLL_FLIGHT_WORDS], words[240];
	uint32_t i, said = 0;

	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		if (!(taken > 0) || observed->taker[i].ns < 0.02 * taken)
			continue;
		snprintf(words, sizeof(words), "%s%s %.0f %%%s", said++ ? ", " : "its core was taken by ",
			 coll_flight_taker_text(&observed->taker[i], one),
			 100 * observed->taker[i].ns / taken, act_text(&observed->taker[i]));
		if (strlen(text) + strlen(words) >= bytes)
			break;
		coll_flight_say(text, bytes, "%s", words);
	}
}

static void say_looks(const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	static const struct {
		const char *words;
		enum coll_flight_doing doing;
	} does[COLL_FLIGHT_BECAUSES] = {
		[COLL_FLIGHT_BECAUSE_STOPPED] = { "it is stopped by a signal", COLL_FLIGHT_DOING_STOP },
		[COLL_FLIGHT_BECAUSE_DISK] = { "it waits for a disk or another device (state D)",
					       COLL_FLIGHT_DOING_DISK },
		[COLL_FLIGHT_BECAUSE_ASLEEP] = { "it sleeps", COLL_FLIGHT_DOING_SLEEP },
		[COLL_FLIGHT_BECAUSE_WORK] = { "it computes", COLL_FLIGHT_DOING_RUN },
	};
	const struct coll_flight_observed *observed = &loss->seen->observed;

	coll_flight_say(text, bytes, "%s outside of calls, in %.0f %% of looks at it",
		    does[loss->because].words,
		    100 * looks_part(observed, does[loss->because].doing));
}

const char *coll_flight_because_text(const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	*text = 0;
	switch (loss->because) {
	case COLL_FLIGHT_BECAUSE_NOT_KNOWN:
	case COLL_FLIGHT_BECAUSE_LINK:
		return NULL;
	case COLL_FLIGHT_BECAUSE_INJECTED:
		coll_flight_say(text, bytes, "stopped by noise of option inject");
		break;
	case COLL_FLIGHT_BECAUSE_STOPPED:
		if (loss->kind == COLL_FLIGHT_LOSS_LINK) {
			coll_flight_say(text, bytes, "it, or who sends to it, is stopped by a signal");
			break;
		}
		/* fall through */
	case COLL_FLIGHT_BECAUSE_DISK:
	case COLL_FLIGHT_BECAUSE_ASLEEP:
	case COLL_FLIGHT_BECAUSE_WORK:
		say_looks(loss, text, bytes);
		break;
	default:
		say_takers(&loss->seen->observed, text, bytes);
	}
	if (loss->alternate)
		coll_flight_say(text, bytes, "; in every other call");
	return text;
}

/* ---- what to do ---------------------------------------------------------------- */

/* The one of this kind that took the most. NULL: none. */
static const struct coll_flight_taker *first_taker(const struct coll_flight_observed *observed,
						   uint32_t kind)
{
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_TAKERS; i++)
		if (observed->taker[i].ns && observed->taker[i].kind == kind)
			return &observed->taker[i];
	return NULL;
}

/* The task that took at least half of what was taken. NULL: none. */
static const struct coll_flight_taker *main_task(const struct coll_flight_observed *observed)
{
	const struct coll_flight_taker *task = first_taker(observed, COLL_FLIGHT_TAKER_TASK);

	return task && task->ns >= coll_flight_taken_ns(observed) / 2 ? task : NULL;
}

static const char *limit_cgroup(const struct coll_flight_observed *observed)
{
	const struct coll_flight_taker *limit = first_taker(observed, COLL_FLIGHT_TAKER_LIMIT);

	return limit ? limit->cgroup : "?";
}

/* Whether a name can be a word of a rule, and of a shell. */
static bool is_plain_name(const char *name)
{
	return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_.:/-")];
}

/* The kernel cuts a name off at 15 characters. */
bool coll_flight_is_own_program(const struct coll_flight_taker *task,
				const struct coll_flight_page *page)
{
	return *page->program && !strncmp(task->name, page->program, 15);
}

static void say_rule(const struct coll_flight_loss *loss, const struct coll_flight_taker *task,
		     char *text, size_t bytes)
{
	const struct coll_flight_observed *observed = &loss->seen->observed;
	const char *host = loss->seen->page.host;
	char rule[100];

	if (task->flags & COLL_FLIGHT_TAKER_KTHREAD)
		snprintf(rule, sizeof(rule), "pin comm=%s kthread", task->name);
	else if (task->flags & COLL_FLIGHT_TAKER_USER)
		snprintf(rule, sizeof(rule), "pin comm=%s uid=%u", task->name, task->uid);
	else
		snprintf(rule, sizeof(rule), "pin comm=%s", task->name);
	if (*loss->cpus)
		coll_flight_say(text, bytes, "Keep `%s` off CPU %u on %s: `collnoise pin init --cpus %s "
				"--rule '%s'` moves it, `collnoise pin fini` back.", task->name,
				observed->cpu, host, loss->cpus, rule);
	else
		coll_flight_say(text, bytes, "Keep `%s` off the ranks' CPUs on %s: bind these (`coll run "
				"--bind core`), and give `collnoise pin` or colld the rule `%s`.",
				task->name, host, rule);
}

/* No command where it would be one that does nothing, or that stops the job. */
static void say_task(const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	const struct coll_flight_observed *observed = &loss->seen->observed;
	const struct coll_flight_taker *task = main_task(observed);
	const char *host = loss->seen->page.host;

	if (task && task->flags & (COLL_FLIGHT_TAKER_MOVED | COLL_FLIGHT_TAKER_HELD))
		coll_flight_say(text, bytes, "colld %s `%s` while this job runs. For all jobs: ",
				task->flags & COLL_FLIGHT_TAKER_MOVED ? "has moved away" : "holds back",
				is_plain_name(task->name) ? task->name : "it");
	if (!task || !is_plain_name(task->name))
		coll_flight_say(text, bytes, "Keep other programs off CPU %u on %s (`collnoise pin`).",
				observed->cpu, host);
	else if (coll_flight_is_own_program(task, &loss->seen->page))
		coll_flight_say(text, bytes, "`%s` is the job's own program: start fewer processes of "
				"it on %s, or bind them to other CPUs than %u.", task->name, host,
				observed->cpu);
	else if (task->flags & COLL_FLIGHT_TAKER_BOUND)
		coll_flight_say(text, bytes, "The kernel binds `%s` to its CPU, and no rule moves it: "
				"leave CPU %u of %s without a rank, or find what gives it work.",
				task->name, observed->cpu, host);
	else if (*loss->cpus && loss->all_cpus && task->flags & COLL_FLIGHT_TAKER_KTHREAD)
		coll_flight_say(text, bytes, "Leave `%s`, a kernel thread, a CPU of %s: all %u have "
				"ranks.", task->name, host, observed->online);
	else if (*loss->cpus && loss->all_cpus)
		coll_flight_say(text, bytes, "Stop `%s` on %s while the job runs (rule `stop` of colld, "
				"coll-job), or leave it a CPU: all %u have ranks.", task->name, host,
				observed->online);
	else
		say_rule(loss, task, text, bytes);
}

bool coll_flight_because_advice(const struct coll_flight_loss *loss, char *text, size_t bytes)
{
	const char *host = loss->seen ? loss->seen->page.host : "?";

	*text = 0;
	switch (loss->because) {
	case COLL_FLIGHT_BECAUSE_TASK:
		say_task(loss, text, bytes);
		break;
	case COLL_FLIGHT_BECAUSE_OWN:
		coll_flight_say(text, bytes, "Rank %u has more threads than cores: fewer threads "
				"(OMP_NUM_THREADS), or more cores a rank, on %s.", loss->rank, host);
		break;
	case COLL_FLIGHT_BECAUSE_SHARED:
		coll_flight_say(text, bytes, "Rank %u shares a core with another rank: fewer ranks on %s, or "
			    "`coll run --bind core`.", loss->rank, host);
		break;
	case COLL_FLIGHT_BECAUSE_LIMIT:
		coll_flight_say(text, bytes, "Raise cpu.max of cgroup %s on %s.",
			    limit_cgroup(&loss->seen->observed), host);
		break;
	case COLL_FLIGHT_BECAUSE_INTERRUPTS:
		coll_flight_say(text, bytes, "Lead interrupts on %s away from CPU %u (`collnoise pin`; "
			    "smp_affinity, rps_cpus).", host, loss->seen->observed.cpu);
		break;
	case COLL_FLIGHT_BECAUSE_STEAL:
		coll_flight_say(text, bytes, "The host of the virtual machine %s runs something else on its "
			    "cores: ask for cores of its own.", host);
		break;
	case COLL_FLIGHT_BECAUSE_INJECTED:
		coll_flight_say(text, bytes, "The job was run with option inject: leave it out.");
		break;
	case COLL_FLIGHT_BECAUSE_STOPPED:
		coll_flight_say(text, bytes, "Find what stops rank %u (SIGSTOP, SIGTSTP, a debugger) on %s.",
			    loss->rank, host);
		break;
	case COLL_FLIGHT_BECAUSE_DISK:
		coll_flight_say(text, bytes, "Rank %u waits for a disk of %s: write less often, to a faster "
			    "one, or from another thread.", loss->rank, host);
		break;
	case COLL_FLIGHT_BECAUSE_ASLEEP:
		coll_flight_say(text, bytes, "Rank %u sleeps in the application before calls: look at what it "
			    "waits for there.", loss->rank);
		break;
	case COLL_FLIGHT_BECAUSE_WORK:
		coll_flight_say(text, bytes, "Give rank %u less to do, or a faster core.", loss->rank);
		break;
	default:
		return false;
	}
	return true;
}
