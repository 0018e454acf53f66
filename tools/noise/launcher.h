/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* collnoise measure on other nodes, all at once: started by coll run's remote shell or by Slurm. */
#ifndef COLL_NOISE_LAUNCHER_H
#define COLL_NOISE_LAUNCHER_H

#include <stdbool.h>

#include "core/port.h"
#include "nodelist.h"

enum noise_launcher {
	/* srun in an allocation of Slurm, but not in its prolog or if a remote shell is named; else ssh */
	NOISE_LAUNCHER_AUTO,
	NOISE_LAUNCHER_SSH,
	NOISE_LAUNCHER_SRUN,
};

extern const char *const noise_launcher_names[];

/* Under srun a line of this and its name says which node a text is of. */
#define NOISE_NODE_LINE "collnoise-node "

struct noise_launch {
	enum noise_launcher launcher;	/* not auto */
	const struct noise_nodelist *nodes;
	const char *list;		/* the same as it was given */
	const char *ssh;		/* the remote shell; NULL: coll run's */
	u64 duration;			/* ns */
	u64 grace;			/* ns after it, until the launcher is ended */
	char **extra;			/* options of collnoise measure */
	u32 extras;
};

/* The one that is meant here: auto becomes another. */
enum noise_launcher noise_launcher_of(enum noise_launcher asked, const char *ssh);

/*
 * Runs it to its end, or until the deadline. text[i] is what node i has printed, or NULL: nothing;
 * the caller frees them. What cannot be started, and what was ended, is said on stderr. False: it
 * was not started.
 */
bool noise_launch(const struct noise_launch *launch, char **text);

#endif
