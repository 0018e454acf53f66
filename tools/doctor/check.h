/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A check looks at one thing of a node. Its verdict is a pure function of the facts, so a test can
 * plant any state; what it costs and how to change it stand beside it in the table of its family.
 */
#ifndef COLL_DOCTOR_CHECK_H
#define COLL_DOCTOR_CHECK_H

#include "facts.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_UNKNOWN,		/* cannot be read here */
	DOCTOR_NOTE,		/* may cost, depending on the job */
	DOCTOR_SLOW,		/* costs time */
	DOCTOR_FAIL,		/* jobs fail */
	DOCTOR_LEVELS
};
extern const char *const doctor_level_names[];	/* up to NULL */

enum { DOCTOR_TEXT = 640, DOCTOR_CHECKS_MAX = 64 };

struct doctor_finding;
struct doctor_check {
	const char *name;		/* "io-uring" */
	const char *looks;		/* what is looked at */
	void (*judge)(const struct doctor_facts *facts, struct doctor_finding *finding);
	const char *cost;		/* unless the verdict has one of its own */
	const char *advice;		/* the same */
	const char *explain;		/* of --explain */
	bool varies;			/* what was found differs between equal nodes */
};

/* One line about a node. */
struct doctor_finding {
	const struct doctor_check *check;
	enum doctor_level level;
	char found[DOCTOR_TEXT], cost[DOCTOR_TEXT], advice[DOCTOR_TEXT];
};

/* The families; each list ends with no name. */
extern const struct doctor_check doctor_transport_checks[], doctor_network_checks[],
	doctor_cpus_checks[], doctor_memory_checks[], doctor_clock_checks[],
	doctor_software_checks[];

/* The index-th check of all families; NULL after the last one. */
const struct doctor_check *doctor_check_at(int index);
const struct doctor_check *doctor_check_named(const char *name);
/* The verdict, with the table's cost and advice where it has none and there is something to say. */
void doctor_judge(const struct doctor_check *check, const struct doctor_facts *facts,
		  struct doctor_finding *finding);

/* For verdicts: the level and what was found; the last call counts. */
void doctor_find(struct doctor_finding *finding, enum doctor_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_cost(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_advise(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
