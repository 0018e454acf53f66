/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What the collectives of a job have cost, and what caused it, from the pages of its ranks.
 *
 * Sums are of all runs. What time was lost to is found in the timed runs (timed.h), which are a
 * sample of all, and scaled to the time in collectives. Of each timed run and each rank the path is
 * followed back from the rank's end: to the message that it waited for last, to who sent that, to
 * what the sender had waited for before, and so on. Time on the path is lost to a rank that had
 * no core, to a message that took longer than is usual, and, before the last rank of the path
 * began, to that rank, which came late. As far as it came late because it had left the run before
 * late, the path goes on there.
 *
 * report_sums.c adds up all runs, report.c finds the timed ones, report_tally.c adds up what they
 * lost, report_path.c follows, report_flight.c says what a message usually takes, report_rank.c
 * makes it the job's, because.c says what is behind a loss by what an observer saw of the rank,
 * report_nodes.c sums up by node, report_rerun.c runs the timed runs once more as if something had been
 * otherwise, report_without.c without each cause, report_remedy.c with what would help, report_redundancy.c of T and report_leaf.c of leaves by
 * the library's model, report_choice.c compares choices, report_text.c prints.
 */
#ifndef COLL_FLIGHT_REPORT_H
#define COLL_FLIGHT_REPORT_H

#include <stdio.h>

#include "clocks.h"

enum coll_flight_loss_kind {
	COLL_FLIGHT_LOSS_LATE,		/* the rank begins calls later than others */
	COLL_FLIGHT_LOSS_STOLEN,	/* in calls, or late for one: ready to run without a core */
	COLL_FLIGHT_LOSS_LINK,		/* messages to it take longer than is usual */
	COLL_FLIGHT_LOSS_KINDS,
	/* It waited, and who or what for is not known. Of it there is a sum alone. */
	COLL_FLIGHT_LOSS_UNKNOWN = COLL_FLIGHT_LOSS_KINDS,
};

extern const char *const coll_flight_loss_names[COLL_FLIGHT_LOSS_KINDS];

/* What is behind a loss. All but the link and injected noise take an observer to be known. */
enum coll_flight_because {
	COLL_FLIGHT_BECAUSE_NOT_KNOWN,
	COLL_FLIGHT_BECAUSE_TASK,	/* another program had its core ... */
	COLL_FLIGHT_BECAUSE_OWN,	/* ... its own other threads, or what it started */
	COLL_FLIGHT_BECAUSE_SHARED,	/* ... another rank of the job */
	COLL_FLIGHT_BECAUSE_LIMIT,	/* its cgroup was throttled */
	COLL_FLIGHT_BECAUSE_INTERRUPTS,
	COLL_FLIGHT_BECAUSE_STEAL,
	COLL_FLIGHT_BECAUSE_INJECTED,	/* option inject */
	COLL_FLIGHT_BECAUSE_STOPPED,	/* outside of calls: by a signal ... */
	COLL_FLIGHT_BECAUSE_DISK,	/* ... it waits for a device */
	COLL_FLIGHT_BECAUSE_ASLEEP,	/* ... it waits for anything else */
	COLL_FLIGHT_BECAUSE_WORK,	/* ... it computes */
	COLL_FLIGHT_BECAUSE_LINK,
	COLL_FLIGHT_BECAUSES,
};

extern const char *const coll_flight_because_names[COLL_FLIGHT_BECAUSES];
extern const char *const coll_flight_taker_names[COLL_FLIGHT_TAKER_KINDS];

enum { COLL_FLIGHT_ADVICE = 640, COLL_FLIGHT_WORDS = 160, COLL_FLIGHT_NODE_NAMES = 6 };

/* All times in seconds; of the job: averages of its ranks. */
struct coll_flight_loss {
	enum coll_flight_loss_kind kind;
	uint32_t rank, index;		/* of job->seen */
	uint32_t from;			/* link: who sends; COLL_FLIGHT_NO_RANK: several ranks */
	uint32_t home;			/* the index of the first rank of the node that it is laid to */
	uint32_t collective;		/* where it costs most */
	double cost;			/* of the job */
	/*
	 * Of the job's time, without it. Who comes late keeps the others waiting: it costs these alone,
	 * and saves their time to all; then the second to come decides.
	 */
	double saved;
	double saved_least, saved_most;	/* by the spread of the timed calls; -1: too few */
	double share;			/* of the calls that have it */
	double by;			/* in such a call, mean */
	bool alternate;			/* it is every other call that has it */
	enum coll_flight_because because;
	const struct coll_flight_seen *seen;	/* the rank; NULL: one of many small losses */
	char cpus[64];			/* those of the job's ranks on its node; "": not known ... */
	bool all_cpus;			/* ... it has no others */
};

/* Of one rank, or means of several: in calls, and what was waited for there, whoever caused it. */
struct coll_flight_spent {
	double inside, waiting, waited[COLL_FLIGHT_LOSS_KINDS], unknown;
};

/* What took time on a node: a program by its name, a kind of loss otherwise. */
struct coll_flight_name {
	char text[COLL_FLIGHT_WORDS];
	double seconds;			/* of the job */
};

/* The ranks of a node together. */
struct coll_flight_node {
	const char *host;
	uint32_t ranks;			/* with a page */
	/* Of the job: what its ranks made all ranks lose; late messages by who sends, if that is one. */
	double cost;
	double lost[COLL_FLIGHT_LOSS_KINDS];	/* the same by kind */
	struct coll_flight_name name[COLL_FLIGHT_NODE_NAMES];	/* by what, the most first */
	uint32_t names;
	struct coll_flight_spent spent;	/* of its ranks, mean */
};

/* A cause, on all ranks that have it together: what one has of it another may have as well. */
struct coll_flight_without {
	enum coll_flight_because because;
	uint32_t ranks;
	double cost;			/* s of the job: of the losses that it is behind */
	double saved;			/* s of the job, without it ... */
	double least, most;		/* ... by the spread of the timed calls; -1: too few */
};

enum coll_flight_remedy_kind {
	COLL_FLIGHT_REMEDY_PIN,		/* programs and interrupts off the ranks' CPUs */
	COLL_FLIGHT_REMEDY_STOP,	/* the program that took most */
	COLL_FLIGHT_REMEDY_REDUNDANCY,	/* T, the redundant exchanges */
	COLL_FLIGHT_REMEDY_LEAF,	/* others wait for the vector of one rank, and for nothing else of it */
	COLL_FLIGHT_REMEDY_TOGETHER,	/* co-scheduling: all nodes are disturbed at the same time */
	COLL_FLIGHT_REMEDY_LEAVE_OUT,	/* the node that costs most */
	COLL_FLIGHT_REMEDIES,
};

extern const char *const coll_flight_remedy_names[COLL_FLIGHT_REMEDIES];

/* What somebody could do, and by what the job would be shorter. */
struct coll_flight_remedy {
	enum coll_flight_remedy_kind kind;
	char what[COLL_FLIGHT_WORDS];
	const char *unknown;		/* why the record does not tell; NULL: it does */
	double saved;			/* s of the job ... */
	double least, most;		/* ... by the spread of the timed calls; -1: too few */
};

/* What a choice is compared with. */
enum coll_flight_regret_by {
	COLL_FLIGHT_REGRET_NOT_KNOWN,
	COLL_FLIGHT_REGRET_BY_TIMES,	/* those of the job's own calls, made another way */
	COLL_FLIGHT_REGRET_BY_MODEL,
	COLL_FLIGHT_REGRETS,
};

extern const char *const coll_flight_regret_names[COLL_FLIGHT_REGRETS];

/* Of the choice that equal calls were made by; s of the job. */
struct coll_flight_regret {
	enum coll_flight_regret_by by;
	/* No more than the calls took; 0 also where what is seen may be chance. */
	double seconds;
	double least, most;		/* by the spread of the times; most -1: by the model */
	/* By times: the best of the other choices, and what it would take here, s. */
	char algo[32];
	uint64_t segment, bytes;
	double time;
};

/* Equal calls. */
struct coll_flight_site {
	uint32_t collective;
	uint64_t bytes;			/* count times element */
	uint32_t ranks;			/* of the group */
	uint32_t type, reduction;
	char algo[32];
	uint64_t segment;		/* bytes; 0: the algorithm has none */
	bool asked;			/* for by name; else chosen by auto */
	struct coll_flight_sum sum;	/* of all ranks */
	double shortest;		/* s, of timed runs: from the last begin to the last end; 0: not known */
	double predicted, best;		/* s of one; 0: not known */
	/* s, of timed runs: the same as `shortest`, its sum and that of its squares. */
	double alone, alone_squares;
	uint64_t alones;
	struct coll_flight_regret regret;
};

struct coll_flight_report {
	const struct coll_flight_page *page;	/* of the first rank: names */
	uint32_t ranks, here, hosts;	/* here: those with a page */
	bool cut;			/* of a node not all ranks were read: there were too many */
	double seconds;			/* from joining to leaving, or to now */
	double inside;			/* in calls of the library ... */
	double waiting;			/* ... of that, in one that has not ended: not scaled */
	double mean, timed_mean;	/* of a run: of all, of those that were timed */
	bool skewed;			/* these are far apart, so no rank is named */
	double least;			/* had each run taken what the model predicts for the best choice, or
					   the shortest run if that is less */
	double chosen;			/* the model's predictions for the choices that were made */
	double lost[COLL_FLIGHT_LOSS_KINDS];
	double unknown;			/* lost as well: to what is not known */
	double calls;			/* of a rank, mean */
	uint32_t timed;			/* runs that were looked at */
	double clock_error;		/* s, between hosts; -1: not known */
	double observed;		/* s that somebody looked at the ranks from outside ... */
	double observed_cost;		/* ... and what part of a core that took, at most of a node */
	double look_pause;		/* s between two looks at all threads of a node, at most of a node */
	bool unlooked;			/* of a rank there was only one such look: too few for causes */
	struct coll_flight_loss *loss;	/* the costliest first */
	uint32_t losses;
	struct coll_flight_spent *rank;	/* per index of job->seen */
	struct coll_flight_node *node;	/* the costliest first */
	uint32_t nodes;			/* as many as hosts */
	struct coll_flight_without without[COLL_FLIGHT_BECAUSES];	/* what saves most first */
	uint32_t withouts;
	struct coll_flight_remedy remedy[COLL_FLIGHT_REMEDIES];	/* what saves most first */
	double regret[COLL_FLIGHT_REGRETS];	/* of calls by auto ... */
	double by_auto[COLL_FLIGHT_REGRETS];	/* ... calls of a rank, by what they were compared with */
	struct coll_flight_site *site;	/* the most time first */
	uint32_t sites;
	struct coll_flight_sum past;	/* of all ranks: calls of which only the sum is left */
};

/* A rank without a core: seconds since the job was joined, in and outside of calls. */
double coll_flight_delayed(const struct coll_flight_page *page);

/* In a call that has not ended. */
double coll_flight_waiting_seconds(const struct coll_flight_seen *seen);
/* What a rank has spent in calls so far, the current one too: no more than the job's time. */
double coll_flight_inside_seconds(const struct coll_flight_seen *seen);

/* -ENOMEM; -EPROTO: the pages contradict themselves, as those of a job do not. The job's pages must live as long as the report. */
int coll_flight_report_make(struct coll_flight_report *report, const struct coll_flight_job *job);
void coll_flight_report_free(struct coll_flight_report *report);

/* ---- because.c ----------------------------------------------------------- */

/* Sets what is behind the loss of this job, which took `seconds`. Not known without evidence of it. */
void coll_flight_find_because(const struct coll_flight_job *job, double seconds,
			      struct coll_flight_loss *loss);
/* What a taker of cores is a cause of. */
enum coll_flight_because coll_flight_because_of(const struct coll_flight_taker *taker);
/* What the taker had of the time that the rank waited for a core; what interrupts had of the time that it had one. */
double coll_flight_part_of_waited(const struct coll_flight_observed *observed,
				  const struct coll_flight_taker *taker);
double coll_flight_part_of_ran(const struct coll_flight_observed *observed);
/* Whether anybody looked at the rank from outside. */
bool coll_flight_is_observed(const struct coll_flight_seen *seen);
/* Whether a task has the job's own program. */
bool coll_flight_is_own_program(const struct coll_flight_taker *task,
				const struct coll_flight_page *page);
/*
 * The CPUs of the job's ranks on this rank's node, as 0-3,8; "": a rank may use several, or it is not
 * known. True: the node has no others.
 */
bool coll_flight_find_cpus(const struct coll_flight_job *job, const struct coll_flight_seen *seen,
			   char *text, size_t bytes);
/* In words, without a full stop. NULL: not known, or there is no more to say than the loss does. */
const char *coll_flight_because_text(const struct coll_flight_loss *loss, char *text, size_t bytes);
/* What to do about it. false: there is no advice but the loss'. */
bool coll_flight_because_advice(const struct coll_flight_loss *loss, char *text, size_t bytes);
const char *coll_flight_taker_text(const struct coll_flight_taker *taker,
				   char text[COLL_FLIGHT_WORDS]);
/* The same in fewer words, of a task its name alone. */
const char *coll_flight_taker_name(const struct coll_flight_taker *taker,
				   char text[COLL_FLIGHT_WORDS]);
/* Whether who took the rank's core is what is behind the loss. */
bool coll_flight_is_by_takers(const struct coll_flight_loss *loss);
/* Adds to a text that has room for so many bytes. */
void coll_flight_say(char *text, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* All that was taken from the rank by somebody who is named. */
double coll_flight_taken_ns(const struct coll_flight_observed *observed);

/* ---- report_text.c ------------------------------------------------------- */

/* That of a node not all ranks were read, in one sentence. NULL: all were. */
const char *coll_flight_cut_text(const struct coll_flight_report *report, char text[160]);
/* One sentence: what costs most. */
const char *coll_flight_verdict(const struct coll_flight_report *report, char *text, size_t bytes);
/* That looks from outside were rare or too few. NULL: they were not, or nobody looked. */
const char *coll_flight_rare_looks(const struct coll_flight_report *report, char text[160]);
/* Whether a loss is large enough to be acted on. */
bool coll_flight_is_worth(const struct coll_flight_report *report,
			  const struct coll_flight_loss *loss);
/* What can be done about a loss, in one sentence. */
const char *coll_flight_advice(const struct coll_flight_report *report,
			       const struct coll_flight_loss *loss, char *text, size_t bytes);
/* What the choice for these calls costs, in one sentence or two; "": nothing, as far as it is known. */
const char *coll_flight_regret_text(const struct coll_flight_report *report,
				    const struct coll_flight_site *site, char *text, size_t bytes);
/* "`backup` 11 s, interrupts 0.2 s": by what a node cost the job so much. */
const char *coll_flight_names_text(const struct coll_flight_node *node, uint32_t most, char *text,
				   size_t bytes);
/* What a call that has not ended waits for, in one sentence. NULL: not worth a word, or not known. */
const char *coll_flight_waits_for(const struct coll_flight_report *report,
				  const struct coll_flight_job *job, char text[COLL_FLIGHT_TEXT]);
/* Without what, of how many ranks. */
const char *coll_flight_without_text(const struct coll_flight_without *without, char text[COLL_FLIGHT_WORDS]);
/* One screen. */
void coll_flight_report_print(const struct coll_flight_report *report,
			      const struct coll_flight_job *job, FILE *to);

#endif
