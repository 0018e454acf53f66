// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "daemon/common/clock.h"
#include "share.h"

/* A ns of CPU time is paid back in so many. */
enum { PART_ONE = 20, PART_ALL = 10 };

static const u64 MOST_ONE = 10000000000ull, MOST_ALL = 20000000000ull, RUNS_NS = 2000000000ull;	/* ns of CPU time */

static u64 share_debt(u64 until, u64 now, u64 part)
{
	return until > now ? (until - now) / part : 0;
}

static u64 share_later(u64 until, u64 now, u64 ns)
{
	return (until > now ? until : now) + ns;
}

u64 report_shares_wait(const struct report_shares *shares, u64 who, u64 now)
{
	const u64 all = share_debt(shares->until, now, PART_ALL) + shares->runs * RUNS_NS;
	u64 debt = 0, of_one, of_all;
	u32 i;

	for (i = 0; i < REPORT_ASKERS; i++)
		if (shares->one[i].who == who)
			debt = share_debt(shares->one[i].until, now, PART_ONE);
	for (i = 0; i < shares->runs; i++)
		debt += shares->run[i] == who ? RUNS_NS : 0;
	of_one = debt < MOST_ONE ? 0 : (debt - MOST_ONE + 1) * PART_ONE;
	of_all = debt + all < MOST_ALL ? 0 : (debt + all - MOST_ALL + 1) * PART_ALL;
	return of_one > of_all ? of_one : of_all;
}

bool report_shares_admit(const struct report_shares *shares, u64 who, struct colld_answer *why)
{
	const u64 wait = report_shares_wait(shares, who, colld_now());

	if (wait)
		colld_answer_say(why, 429, "the reports that were made for you have had your share of the time, or "
				 "those of all had theirs; ask in %llu s", (unsigned long long)(wait / 1000000000 + 1));
	return !wait;
}

void report_shares_begin(struct report_shares *shares, u64 who)
{
	if (shares->runs < REPORT_RUNS)
		shares->run[shares->runs++] = who;
}

static void share_end(struct report_shares *shares, u64 who)
{
	u32 i;

	for (i = 0; i < shares->runs; i++)
		if (shares->run[i] == who) {
			shares->run[i] = shares->run[--shares->runs];
			return;
		}
}

/* Of those that are known, who has had least makes room. */
void report_shares_take(struct report_shares *shares, u64 who, u64 now, u64 cost)
{
	u32 i, found = 0;

	share_end(shares, who);
	for (i = 0; i < REPORT_ASKERS && shares->one[found].who != who; i++)
		if (shares->one[i].who == who || shares->one[i].until < shares->one[found].until)
			found = i;
	if (shares->one[found].who != who) {
		shares->one[found].who = who;
		shares->one[found].until = 0;
	}
	shares->one[found].until = share_later(shares->one[found].until, now, PART_ONE * cost);
	shares->until = share_later(shares->until, now, PART_ALL * cost);
}
