/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A process that was judged, and what is done to it. All of it is logged. */
#ifndef COLL_DAEMON_ACT_PROCESS_H
#define COLL_DAEMON_ACT_PROCESS_H

#include "deed.h"
#include "hold.h"
#include "judge.h"

enum act_result { ACT_MOVED, ACT_HELD, ACT_ADVISED, ACT_LEFT, ACT_RESULTS };

struct act {
	u32 pid;
	u64 born;
	u64 since, until;	/* until 0: nothing is done to it, or not any more */
	struct act_deed deed;
	struct colld_hold hold;	/* of one that is held back */
	bool again;		/* that is not all done yet */
	bool ending;		/* ... nor all undone */
	bool told;		/* that it takes as much as before */
};

/* What colld does for all. */
struct act_means {
	const struct node_rules *rules;
	const char *state;	/* folder */
};

/* Moves it, or holds it back, as the policy says. `evidence`: who took how much. */
enum act_result act_begin(struct act *act, const struct act_means *means, const char *name,
			  const struct colld_case *of, const char *evidence);
/* Whether it is one that is held back, be it let go now. */
bool act_is_hold(const struct act *act);
/*
 * Holds it back, or lets it go, as it is time. Returns when it is again. `phase`: a rank is in a collective;
 * none of these is ever frozen.
 */
u64 act_hold(struct act *act, const struct act_means *means, bool phase, const u32 *rank, u32 ranks);
/* It took this share of a core from the ranks while it was held back: more than the policy leaves to it? */
void act_tell_share(struct act *act, const struct node_act *policy, double share);
/*
 * Those of them that are in force. What cannot be put back now is tried again; its file stays until then,
 * and for the next colld.
 */
void acts_end(struct act *const *act, u32 count, const struct act_means *means, const char *why);

#endif
