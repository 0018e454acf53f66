// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What colld may move for a job, and what it takes for the largest taker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "daemon/policy/family.c"
#include "daemon/policy/jobs.c"
#include "daemon/policy/judge.c"
#include "daemon/policy/takers.c"
#include "node/units.h"

enum { USER = 5000, FAR = 1u << 30 };	/* numbers that no process has: sessions are not asked */

static const struct node_tasks *tasks_of(struct node_task *task, u32 count)
{
	static struct node_tasks tasks;

	tasks = (struct node_tasks){ task, count, count };
	return &tasks;
}

static struct node_task task_of(u32 pid, u32 parent, u32 uid, const char *comm)
{
	struct node_task task = { .tid = pid, .pid = pid, .parent = parent, .uid = uid, .cgroup = "/" };

	snprintf(task.comm, sizeof(task.comm), "%s", comm);
	return task;
}

static void judged(const char *policy, const struct node_task *process, const char *wanted)
{
	struct node_task all[] = { *process };
	struct coll_text_error error;
	struct node_rules rules;
	const struct colld_case of = { &rules, tasks_of(all, 1), NULL, 0 };
	const char *why;

	assert_int_equal(node_rules_parse(policy, &rules, &error), 0);
	why = colld_judge(&of, process);
	if (wanted)
		assert_non_null(strstr(why ? why : "", wanted));
	else
		assert_null(why);
	node_rules_free(&rules);
}

/* One that sleeps until it is killed. */
static pid_t child_begin(void)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void the_system_is_moved_and_users_are_not(void **state)
{
	const pid_t child = child_begin();
	struct node_task task = task_of(child, 1, 0, "backup");

	(void)state;
	judged("", &task, NULL);
	judged("pin comm=backup", &task, NULL);
	judged("keep comm=back*\npin comm=*", &task, "a keep line");
	judged("pin comm=backup\nkeep comm=*", &task, NULL);
	task.uid = COLLD_SYSTEM_USERS - 1;
	judged("", &task, NULL);
	task.uid = COLLD_SYSTEM_USERS;
	assert_true(colld_is_of_users(&task));
	task.uid = USER;
	assert_true(colld_is_of_users(&task));
	task.uid = 0;
	assert_false(colld_is_of_users(&task));
	task.bound = task.kthread = true;
	judged("", &task, "the kernel binds it");
	task.bound = false;
	judged("", &task, NULL);
	task = task_of(1, 0, 0, "init");
	judged("", &task, "what it starts");
	task = task_of(2, 0, 0, "kthreadd");
	task.kthread = true;
	judged("", &task, "what it starts");
	task = task_of(getpid(), 1, 0, "colld");
	judged("", &task, "colld");
	child_end(child);
}

/* A process of a namespace of its own is begun, and told apart from this one. */
static int contain(void)
{
	struct node_tasks members = { .count = 0 };
	struct node_task task;
	pid_t pid;
	int told;

	if (unshare(CLONE_NEWPID))
		return 77;
	pid = child_begin();
	task = task_of(pid, 1, 0, "contained");
	judged("", &task, "in a container");
	told = node_task_shares_pids(getpid()) && !node_task_shares_pids(pid) &&
	       !read_member(&members, getpid()) && strstr(read_member(&members, pid), "a container");
	child_end(pid);
	node_tasks_free(&members);
	return !told;
}

static void who_is_or_may_be_in_a_container_is_left(void **state)
{
	const struct node_task nobody = task_of(FAR, 1, 0, "backup");
	int status;
	const pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(contain());
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 77));
	judged("", &nobody, "cannot be read");
}

/* Of root's job: launcher 1, ranks 2 and 3 below it, their sibling 4; what started 1 is 0; 5 is another. */
static void a_job_of_root_is_known_by_descent(void **state)
{
	struct node_task all[] = {
		task_of(FAR, 1, 0, "slurmstepd"),	 task_of(FAR + 1, FAR, 0, "coll"),
		task_of(FAR + 2, FAR + 1, 0, "rank"), task_of(FAR + 3, FAR + 1, 0, "rank"),
		task_of(FAR + 4, FAR + 1, 0, "sibling"), task_of(FAR + 5, FAR, 0, "cousin"),
		task_of(FAR + 6, FAR + 2, 0, "child"),
	};
	const u32 rank[] = { FAR + 2, FAR + 3 };
	struct node_rules rules = { .rules = 0 };
	const struct colld_case of = { &rules, tasks_of(all, 7), rank, 2 };
	u32 i;

	(void)state;
	for (i = 0; i < 7; i++) {
		const struct node_task *rank_task = node_tasks_find(of.tasks, rank[0]);
		const bool below = node_tasks_below(of.tasks, &all[i], rank_task->parent),
			   above = node_tasks_below(of.tasks, rank_task, all[i].pid);

		assert_int_equal(below || above, i != 5);
	}
	assert_non_null(colld_judge(&of, &all[4]));
	assert_non_null(colld_judge(&of, &all[0]));
}

static void takers_are_added_up_by_process(void **state)
{
	struct node_ran ran = { .name = "back up\n\033[31m", .pid = 7, .tid = 8, .cpu = 3 };
	struct observer_taken taken = { "job $(x)", 1, 9, &ran, 100 };
	struct colld_takers takers = { .count = 0 };
	u32 i;

	(void)state;
	colld_takers_add(&takers, &taken);
	ran.pid = 17;
	taken.ns = 150;
	colld_takers_add(&takers, &taken);
	ran.pid = 7;
	taken.ns = 100;
	colld_takers_add(&takers, &taken);
	colld_takers_sort(&takers);
	assert_int_equal(takers.count, 2);
	assert_int_equal(takers.taker[0].pid, 7);
	assert_int_equal(takers.taker[0].ns, 200);
	assert_int_equal(takers.taker[0].cpu, 3);
	assert_string_equal(takers.taker[0].name, "back?up???31m");
	assert_string_equal(takers.taker[0].job, "job???x?");
	for (i = 100; i < 300; i++) {
		ran.pid = i;
		colld_takers_add(&takers, &taken);
	}
	assert_int_equal(takers.count, COLLD_TAKERS);
	ran.pid = 300;
	taken.ns = 120;
	colld_takers_add(&takers, &taken);	/* instead of one that took less */
	colld_takers_sort(&takers);
	assert_int_equal(takers.count, COLLD_TAKERS);
	assert_int_equal(takers.taker[0].pid, 7);
	assert_int_equal(takers.taker[2].pid, 300);
	assert_int_equal(takers.taker[2].ns, 120);
}

static void write_job(const char *folder, const char *text)
{
	char path[600];
	FILE *to;

	snprintf(path, sizeof(path), "%s/one", folder);
	to = fopen(path, "w");
	assert_non_null(to);
	fputs(text, to);
	fclose(to);
}

static void remove_job(const char *folder)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/one", folder);
	assert_int_equal(unlink(path), 0);
}

/* So many more descriptors can be opened. */
static void allow_descriptors(rlim_t more, const struct rlimit *all)
{
	const int next = dup(0);
	const struct rlimit few = { next + more, all->rlim_max };

	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

/* The folder can be opened, and what is in it cannot. */
static void without_descriptors_nothing_is_said_to_be_gone(void **state)
{
	char folder[] = "/tmp/coll-act.XXXXXX";
	struct colld_jobs jobs;
	struct node_tasks tasks;
	struct rlimit all;
	u32 uid[4], more;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(colld_jobs_open(&jobs, folder), 0);
	write_job(jobs.folder, "uid 5000\n");
	assert_int_equal(colld_jobs_users(&jobs, uid, 4), 1);
	assert_int_equal(uid[0], 5000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	for (more = 0; more < 2; more++) {
		allow_descriptors(more, &all);
		assert_int_equal(colld_jobs_users(&jobs, uid, 4), -EMFILE);
		assert_int_equal(node_tasks_look(&tasks), -EMFILE);
		assert_int_equal(tasks.count, 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	}
	assert_int_equal(node_tasks_look(&tasks), 0);
	assert_non_null(node_tasks_find(&tasks, getpid()));
	node_tasks_free(&tasks);
	colld_jobs_close(&jobs);
	remove_job(jobs.folder);
	assert_int_equal(rmdir(jobs.folder), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void refused(const char *policy, const char *wanted)
{
	struct coll_text_error error;
	struct node_rules rules;

	assert_int_equal(node_rules_parse(policy, &rules, &error), -EINVAL);
	assert_non_null(strstr(error.reason, wanted));
	node_rules_free(&rules);
}

static void the_line_of_the_policy_is_read(void **state)
{
	struct coll_text_error error;
	struct node_rules rules;

	(void)state;
	assert_int_equal(node_rules_parse("", &rules, &error), 0);
	assert_int_equal(rules.act.mode, NODE_ACT_OFF);
	assert_int_equal(node_rules_parse("act act share=2.5% for=1h most=3 # so", &rules, &error), 0);
	assert_int_equal(rules.act.mode, NODE_ACT_ACT);
	assert_float_equal(rules.act.share, 0.025, 1e-9);
	assert_int_equal(rules.act.longest / NODE_S, 3600);
	assert_int_equal(rules.act.most, 3);
	assert_int_equal(node_rules_parse("act hold leave=25%\nhold cgroup=/backup", &rules, &error), 0);
	assert_int_equal(rules.act.mode, NODE_ACT_HOLD);
	assert_float_equal(rules.act.leave, 0.25, 1e-9);
	assert_true(node_rules_may_freeze(&rules, "/backup"));
	assert_false(node_rules_may_freeze(&rules, "/backup/below"));
	node_rules_free(&rules);
	refused("act", "valid: off, advise, act or hold");
	refused("act advice", "'advice'; valid: off, advise, act or hold");
	refused("act hold leave=0", "1% to 50%");
	refused("act hold leave=51%", "1% to 50%");
	refused("act act share=0", "0.1% to 100%");
	refused("act act share=101%", "0.1% to 100%");
	refused("act act for=169h", "1s to 168h");
	refused("act act most=1001", "1 to 1000");
	refused("act act never", "there is no 'never'; valid: share, for, most, leave");
}

/* Of many that are no service, and where the kernel would read another path. */
static void only_a_service_may_be_frozen(void **state)
{
	static const char *const wrong[] = {
		"hold", "hold cgroup=", "hold cgroup=/", "hold cgroup=backup", "hold cgroup=/init.scope",
		"hold cgroup=/user.slice", "hold cgroup=/user.slice/user-0.slice", "hold cgroup=/system.slice",
		"hold cgroup=/a/session-3.scope", "hold cgroup=/a/../init.scope", "hold cgroup=/./init.scope",
		"hold cgroup=//init.scope", "hold cgroup=/init.scope/", "hold unit=cron.service",
		"hold cgroup=/a cgroup=/b", "hold cgroup=/system.slice/systemd-journald.service",
		"hold cgroup=/system.slice/dbus.service",
	};
	struct coll_text_error error;
	struct node_rules rules;
	char line[200];
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refused(wrong[i], "valid: cgroup=/name of one service");
	snprintf(line, sizeof(line), "hold cgroup=/%0*d", NODE_TASK_CGROUP, 1);
	refused(line, "below 128 characters");
	assert_int_equal(node_rules_parse("hold cgroup=/a\nwindow cgroup=/a period=1s open=50ms", &rules, &error), 0);
	assert_int_equal(node_rules_complete(&rules, &error), -EINVAL);
	assert_non_null(strstr(error.reason, "has a window"));
	node_rules_free(&rules);
	assert_int_equal(node_rules_parse("hold cgroup=/a\nstop cgroup=/a", &rules, &error), 0);
	assert_int_equal(node_rules_complete(&rules, &error), -EINVAL);
	assert_non_null(strstr(error.reason, "is stopped"));
	node_rules_free(&rules);
}

static const char *member_judged(const struct node_task *members, u32 count, u32 which, u32 rank)
{
	struct node_task all[4];

	memcpy(all, members, count * sizeof(*members));
	return judge_member(tasks_of(all, count), &all[which], FAR, &rank, 1);
}

static void alone_in_its_cgroup(void **state)
{
	struct node_task all[] = {
		task_of(FAR, 1, 0, "backup"), task_of(FAR + 1, FAR, 0, "tar"), task_of(FAR + 2, 1, 0, "cron"),
	};

	(void)state;
	assert_null(member_judged(all, 3, 0, FAR + 9));
	assert_null(member_judged(all, 3, 1, FAR + 9));
	assert_non_null(strstr(member_judged(all, 3, 2, FAR + 9), "not alone"));
	assert_non_null(strstr(member_judged(all, 3, 1, FAR + 1), "a rank"));
	all[1].uid = COLLD_SYSTEM_USERS;
	assert_non_null(strstr(member_judged(all, 3, 1, FAR + 9), "a user"));
	all[1].uid = 0;
	all[1].kthread = true;
	assert_non_null(strstr(member_judged(all, 3, 1, FAR + 9), "the kernel"));
	assert_non_null(strstr(colld_judge_hold(&all[1], false), "the kernel"));
}

/* What it has started inherits that it is held back: of a user's and of a rank's nothing may. */
static void families_are_the_systems_own(void **state)
{
	static struct node_task many[COLLD_FAMILY_MOST + 1];
	const pid_t pid = child_begin();
	struct node_task all[] = { task_of(pid, 1, 0, "crond"), task_of(pid, pid, 0, "job") };
	const u32 rank = pid;
	struct colld_case of = { .tasks = tasks_of(all, 2), .rank = &rank };
	u32 i;

	(void)state;
	all[1].tid = FAR;
	assert_null(colld_judge_family(&of, &all[0]));
	of.ranks = 1;
	assert_non_null(strstr(colld_judge_family(&of, &all[0]), "or a job"));
	of.ranks = 0;
	all[1].uid = COLLD_SYSTEM_USERS;
	assert_non_null(strstr(colld_judge_family(&of, &all[0]), "of a user"));
	all[1].uid = 0;
	all[1].pid = FAR;
	assert_non_null(strstr(colld_judge_family(&of, &all[0]), "a container"));
	for (i = 0; i <= COLLD_FAMILY_MOST; i++) {
		many[i] = all[0];
		many[i].tid = FAR + i;
	}
	of.tasks = tasks_of(many, COLLD_FAMILY_MOST);
	assert_null(colld_judge_family(&of, &many[0]));
	of.tasks = tasks_of(many, COLLD_FAMILY_MOST + 1);
	assert_ptr_equal(colld_judge_family(&of, &many[0]), colld_family_large);
	child_end(pid);
}

/* Without the right to put it back. */
static bool is_refused_without_rights(const struct node_task *task)
{
	int status;
	const pid_t pid = fork();

	if (!pid) {
		const char *why = setuid(64321) ? "" : colld_judge_hold(task, false);

		_exit(!why || !strstr(why, "CAP_SYS_NICE"));
	}
	waitpid(pid, &status, 0);
	return status == 0;
}

static void held_back_only_by_who_can_let_go(void **state)
{
	const struct sched_param none = { .sched_priority = 0 };
	const struct node_task task = task_of(getpid(), 1, 0, "backup");

	(void)state;
	if (geteuid())
		skip();
	assert_null(colld_judge_hold(&task, false));
	assert_true(is_refused_without_rights(&task));
	assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &none), 0);
	assert_non_null(strstr(colld_judge_hold(&task, false), "SCHED_IDLE already"));
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_system_is_moved_and_users_are_not),
		cmocka_unit_test(who_is_or_may_be_in_a_container_is_left),
		cmocka_unit_test(a_job_of_root_is_known_by_descent),
		cmocka_unit_test(takers_are_added_up_by_process),
		cmocka_unit_test(without_descriptors_nothing_is_said_to_be_gone),
		cmocka_unit_test(the_line_of_the_policy_is_read),
		cmocka_unit_test(only_a_service_may_be_frozen),
		cmocka_unit_test(alone_in_its_cgroup),
		cmocka_unit_test(families_are_the_systems_own),
		cmocka_unit_test(held_back_only_by_who_can_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
