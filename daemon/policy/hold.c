// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "hold.h"
#include "node/units.h"

/* At the least: below that nothing can be done in it. */
static u64 hold_left(double leave)
{
	const u64 left = leave * NODE_S;

	return left < NODE_MS ? NODE_MS : left > NODE_S ? NODE_S : left;
}

u64 colld_hold_next(const struct colld_hold *hold, double leave)
{
	return hold->since + (hold->held ? NODE_S - hold_left(leave) : hold_left(leave));
}

bool colld_hold_wanted(const struct colld_hold *hold, double leave, u64 now, bool phase)
{
	if (!phase)
		return false;
	return hold->held == (now < colld_hold_next(hold, leave));
}

void colld_hold_note(struct colld_hold *hold, u64 now, bool held)
{
	if (hold->held)
		hold->ns += now - hold->since;
	hold->times += held;
	hold->held = held;
	hold->since = now;
}

u64 colld_hold_total(const struct colld_hold *hold, u64 now)
{
	return hold->ns + (hold->held ? now - hold->since : 0);
}
