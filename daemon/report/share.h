/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What CPU time those may take who ask for reports: in the long run a twentieth of a core each, and a tenth all
 * together; at once 10 s and 20 s. Who has had less than is left of all has some: nobody can take all of it.
 */
#ifndef COLL_DAEMON_SHARE_H
#define COLL_DAEMON_SHARE_H

#include <stdbool.h>

#include "daemon/common/answer.h"

enum {
	REPORT_ASKERS = 64,		/* that are known to have had some */
	REPORT_RUNS = 64,		/* reports that are being made, of whoever has a share */
};

struct report_shares {
	struct {
		u64 who;		/* daemon/common/peer.h */
		u64 until;		/* time from when on it has all of its share again; 0: never had any */
	} one[REPORT_ASKERS];
	u64 until;			/* ... all have */
	u64 run[REPORT_RUNS];		/* for whom reports are being made */
	u32 runs;
};

/* All times are ns, and `now` is colld_now(). How long it has to wait until it may ask; 0: it may. */
u64 report_shares_wait(const struct report_shares *shares, u64 who, u64 now);
/* Whether it may ask now; else `why` says when. */
bool report_shares_admit(const struct report_shares *shares, u64 who, struct colld_answer *why);
/* One is being made, which counts as 2 s until it is known what it took. */
void report_shares_begin(struct report_shares *shares, u64 who);
/* ... it has been, for `cost` ns. */
void report_shares_take(struct report_shares *shares, u64 who, u64 now, u64 cost);

#endif
