/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * When what is held back is let go: while no rank is in a collective, and for a part of each second. Also
 * if this looks late, what was let go is so for all of its part.
 */
#ifndef COLL_DAEMON_HOLD_H
#define COLL_DAEMON_HOLD_H

#include "core/port.h"

struct colld_hold {
	bool held;
	u64 since;		/* it is, or is not */
	u64 ns;			/* that it was, without the time since */
	u32 times;
};

/* Whether it is to be now. `leave`: the part of a second. */
bool colld_hold_wanted(const struct colld_hold *hold, double leave, u64 now, bool phase);
/* When that changes at the latest, if the phase does not. */
u64 colld_hold_next(const struct colld_hold *hold, double leave);
/* It is so from now on. */
void colld_hold_note(struct colld_hold *hold, u64 now, bool held);
/* ns that it was held, up to now. */
u64 colld_hold_total(const struct colld_hold *hold, u64 now);

#endif
