// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "act_process.h"
#include "daemon/common/clock.h"
#include "daemon/common/log.h"
#include "family.h"
#include "node/priority.h"
#include "node/units.h"

static const u64 AGAIN_NS = 5 * NODE_S;		/* until what could not be put back is tried again */
static const u64 SOON_NS = 110 * NODE_MS;	/* ... held back, let go or written down */

bool act_is_hold(const struct act *act)
{
	return act->until && act->deed.form != ACT_FORM_MOVE;
}

/* ---- begin ------------------------------------------------------------------- */

static void act_in_force(struct act *act, const struct act_means *means)
{
	act->until = act->since + means->rules->act.longest;
}

/* 0 or -errno. */
static int act_move(struct act *act, const struct act_means *means, const char *name,
		    const struct colld_case *of, const char *evidence)
{
	const struct act_wish wish = {
		.form = ACT_FORM_MOVE, .process = node_tasks_find(of->tasks, act->pid), .name = name,
		.tasks = of->tasks, .to = &means->rules->housekeeping,
	};
	char cpus[NODE_CPUS_TEXT];
	const int error = act_deed_do(&act->deed, &wish, means->state);

	if (error)
		return error;
	act_in_force(act, means);
	colld_log(LOG_NOTICE, "act: %s: moved to CPUs %s until the job ends, at most for %.0f s", evidence,
		  node_cpus_list(&means->rules->housekeeping, cpus, sizeof(cpus)),
		  means->rules->act.longest / 1e9);
	return 0;
}

static void hold_log(const struct act *act, const struct act_means *means, const char *evidence,
		     const char *cgroup, const char *why)
{
	char how[NODE_TASK_CGROUP + 32] = "SCHED_IDLE";

	if (cgroup)
		snprintf(how, sizeof(how), "the freezer of cgroup %s", cgroup);
	else if (act_deed_weighs(&act->deed))
		strcpy(how, "SCHED_IDLE and its session's weight");
	colld_log(LOG_NOTICE, "act: %s: held back by %s while ranks are in collectives, but for %.0f %% of "
		  "each second, until the job ends, at most for %.0f s%s%s", evidence, how,
		  100 * means->rules->act.leave, means->rules->act.longest / 1e9, *why ? "; " : "", why);
}

static enum act_result hold_refused(const char *evidence, const char *why, const char *not_moved)
{
	colld_log(LOG_WARNING, "act: %s: left alone: it cannot be held back: %s%s%s", evidence, why,
		  *not_moved ? "; " : "", not_moved);
	return ACT_LEFT;
}

/* A thread that has a real-time policy is not to stand still: then the others are held back alone. */
static bool has_real_time(const struct node_tasks *tasks, u32 pid)
{
	char policy[NODE_PRIORITY_TEXT];
	u32 i;

	for (i = 0; i < tasks->count; i++)
		if (tasks->task[i].pid == pid && !node_policy_read(tasks->task[i].tid, policy) &&
		    !node_policy_yields(policy) && strcmp(policy, node_policy_idle))
			return true;
	return false;
}

/* `not_moved`: why it is not, for the log. */
static enum act_result act_begin_hold(struct act *act, const struct act_means *means, const char *name,
				      const struct colld_case *of, const char *evidence,
				      const char *not_moved)
{
	struct node_freezer freezer;
	struct act_wish wish = {
		.form = ACT_FORM_HOLD, .process = node_tasks_find(of->tasks, act->pid), .name = name,
		.tasks = of->tasks, .cgroup = colld_may_freeze(means->rules, act->pid, &freezer),
	};
	const char *why;
	int error;

	if (has_real_time(of->tasks, act->pid))
		wish.cgroup = NULL;
	why = colld_judge_hold(wish.process, wish.cgroup);
	if (!why)
		why = wish.cgroup ? colld_judge_cgroup(&freezer, act->pid, of->rank, of->ranks) :
				    colld_judge_family(of, wish.process);
	if (why)
		return hold_refused(evidence, why, not_moved);
	if (wish.cgroup)
		wish.form = ACT_FORM_FREEZE;
	error = act_deed_do(&act->deed, &wish, means->state);
	if (error)
		return hold_refused(evidence, error == -EALREADY ? wish.cgroup ?
				    "its cgroup is frozen already" : "its threads have policies of their own" :
				    strerror(-error), not_moved);
	act_in_force(act, means);
	colld_hold_note(&act->hold, colld_now(), true);
	hold_log(act, means, evidence, wish.cgroup, not_moved);
	return ACT_HELD;
}

enum act_result act_begin(struct act *act, const struct act_means *means, const char *name,
			  const struct colld_case *of, const char *evidence)
{
	char why[128];
	int error;

	if (means->rules->act.mode == NODE_ACT_HOLD)
		return act_begin_hold(act, means, name, of, evidence, "");
	error = act_move(act, means, name, of, evidence);
	if (!error)
		return ACT_MOVED;
	snprintf(why, sizeof(why), "it cannot be moved: %s", strerror(-error));
	if (error != -ESRCH && error != -EEXIST)
		return act_begin_hold(act, means, name, of, evidence, why);
	colld_log(LOG_WARNING, "act: %s: left alone: %s", evidence, why);
	return ACT_LEFT;
}

/* ---- hold -------------------------------------------------------------------- */

/* NULL: it may be frozen still. */
static const char *hold_judge(const struct act *act, const u32 *rank, u32 ranks)
{
	struct node_freezer freezer;

	if (act->deed.form != ACT_FORM_FREEZE)
		return NULL;
	if (node_freezer_find(&freezer, act->deed.pinning.pin[0].name))
		return "its cgroup is gone";
	return colld_judge_cgroup(&freezer, act->pid, rank, ranks);
}

/* Returns why it ends, or NULL. */
static const char *act_set(struct act *act, const struct act_means *means, bool held, const u32 *rank,
			   u32 ranks)
{
	const u64 now = colld_now();

	act->again = !act_deed_set(&act->deed, means->state, held, rank, ranks);
	if (held != act->hold.held)
		colld_hold_note(&act->hold, now, held);
	if (act->deed.large)
		return colld_family_large;
	return act_deed_is_empty(&act->deed) ? "nothing of it is held back any more" : NULL;
}

u64 act_hold(struct act *act, const struct act_means *means, bool phase, const u32 *rank, u32 ranks)
{
	const double leave = means->rules->act.leave;
	const u64 now = colld_now();
	const bool wanted = colld_hold_wanted(&act->hold, leave, now, phase);
	struct act *const one[] = { act };
	const char *why = NULL;

	if (act->ending)
		return act->until;
	if (wanted != act->hold.held || act->again) {
		why = wanted ? hold_judge(act, rank, ranks) : NULL;
		if (!why)
			why = act_set(act, means, wanted, rank, ranks);
	}
	if (why) {
		acts_end(one, 1, means, why);
		return UINT64_MAX;
	}
	if (act->again)
		return now + SOON_NS;
	/* Without a phase looks say when one begins. */
	return phase ? colld_hold_next(&act->hold, leave) : UINT64_MAX;
}

void act_tell_share(struct act *act, const struct node_act *policy, double share)
{
	/* While it is let go it may take all of that. */
	if (act->told || !act_is_hold(act) || act->deed.form == ACT_FORM_FREEZE ||
	    share < policy->leave + policy->share)
		return;
	act->told = true;
	colld_log(LOG_NOTICE, "act: %s (pid %u) took %.0f %% of a core from ranks while it was held back: "
		  "its cgroup has a weight of its own; a line hold cgroup= lets it be frozen",
		  act->deed.name, act->pid, 100 * share);
}

/* ---- end --------------------------------------------------------------------- */

static void end_log(const struct act *act, u64 now, const char *why)
{
	char held[64] = "";

	if (act_is_hold(act))
		snprintf(held, sizeof(held), " (held back for %.1f s of it, %u times)",
			 colld_hold_total(&act->hold, now) / 1e9, act->hold.times);
	colld_log(LOG_NOTICE, "act: %s (pid %u) %s after %.1f s%s: %s", act->deed.name, act->pid,
		  act_deed_text(&act->deed), (now - act->since) / 1e9, held, why);
}

static void end_one(struct act *act, const char *why)
{
	const bool undone = act_deed_is_undone(&act->deed);
	const u64 now = colld_now();

	if (undone || !act->ending)	/* each time that it is tried again would be too much */
		end_log(act, now, why);
	if (undone) {
		act->until = 0;
		act_deed_free(&act->deed);
		return;
	}
	act->until = now + AGAIN_NS;
	act->ending = true;
}

void acts_end(struct act *const *act, u32 count, const struct act_means *means, const char *why)
{
	struct act_deed **deed = calloc(count + 1, sizeof(*deed));
	u32 i, deeds = 0;

	for (i = 0; i < count; i++)
		if (act[i]->until && deed)
			deed[deeds++] = &act[i]->deed;
		else if (act[i]->until)
			act_deeds_undo(&(struct act_deed *){ &act[i]->deed }, 1, means->state);
	if (deeds)
		act_deeds_undo(deed, deeds, means->state);
	free(deed);
	for (i = 0; i < count; i++)
		if (act[i]->until)
			end_one(act[i], why);
}
