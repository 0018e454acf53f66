/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The options of colld. */
#ifndef COLL_DAEMON_OPTIONS_H
#define COLL_DAEMON_OPTIONS_H

#include "node/rules.h"

/* Who is shown the reports of jobs. */
enum colld_reports_for {
	COLLD_REPORTS_OFF,		/* nobody */
	COLLD_REPORTS_OWNER,		/* a job's owner, and root */
	COLLD_REPORTS_ANYBODY,		/* whoever reaches the address of the metrics as well */
};

struct colld_options {
	const char *policy, *circuits, *state;	/* files, and the state's folder */
	u64 interval;
	const char *address;		/* of the metrics */
	int port;			/* 0: no metrics */
	enum colld_reports_for reports;
	const char *host_names;		/* of this node beside its own, with commas between them; NULL: none */
	bool keep;			/* at the end, moved tasks stay where they are */
	bool check, status, json;
	double watch_cost;		/* part of ranks' CPUs that coll.ko's counting may take; 0: it does not count */
	bool act_given;			/* it counts, not the policy's */
	enum node_act_mode act;
};

/* Options that are not given keep their values. Prints --help and exits, or what is refused. */
bool colld_options_read(int argc, char **argv, struct colld_options *options);

#endif
