// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What is held back, let go, and undone; and when. The tasks are children of this test.
 *
 * Length: one child, and a test for each way in which it, others or the files change meanwhile.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/policy/deed.c"
#include "daemon/policy/family.c"
#include "daemon/policy/hold.c"
#include "node/priority.h"

/* ---- when --------------------------------------------------------------------- */

static void held_but_for_a_part_of_each_second(void **state)
{
	struct colld_hold hold = { .held = false };
	const u64 begin = 7 * NODE_S;

	(void)state;
	colld_hold_note(&hold, begin, true);
	assert_true(colld_hold_wanted(&hold, 0.25, begin, true));
	assert_true(colld_hold_wanted(&hold, 0.25, begin + 749 * NODE_MS, true));
	assert_false(colld_hold_wanted(&hold, 0.25, begin + 750 * NODE_MS, true));
	assert_int_equal(colld_hold_next(&hold, 0.25), begin + 750 * NODE_MS);
	/* This looks 5 s late: what is let go is so for all of its part. */
	colld_hold_note(&hold, begin + 5750 * NODE_MS, false);
	assert_false(colld_hold_wanted(&hold, 0.25, begin + 5999 * NODE_MS, true));
	assert_int_equal(colld_hold_next(&hold, 0.25), begin + 6000 * NODE_MS);
	assert_true(colld_hold_wanted(&hold, 0.25, begin + 6000 * NODE_MS, true));
	assert_int_equal(colld_hold_total(&hold, begin + 6000 * NODE_MS), 5750 * NODE_MS);
	assert_int_equal(hold.times, 1);
}

static void let_go_where_no_rank_is_in_a_collective(void **state)
{
	struct colld_hold hold = { .held = false };

	(void)state;
	colld_hold_note(&hold, NODE_S, true);
	assert_false(colld_hold_wanted(&hold, 0.1, NODE_S, false));
	colld_hold_note(&hold, NODE_S, false);
	assert_false(colld_hold_wanted(&hold, 0.1, 20 * NODE_S, false));
	assert_true(colld_hold_wanted(&hold, 0.1, 20 * NODE_S, true));
}

/* ---- children ---------------------------------------------------------------------- */

static void *sleep_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		pause();
	return NULL;
}

/*
 * With a thread more of its own; it starts another process and another thread at SIGUSR1, and waits for one
 * that has ended.
 */
static void child_run(int ready)
{
	pthread_t thread;
	sigset_t set;
	int got;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_create(&thread, NULL, sleep_for_ever, NULL);
	while (write(ready, "", 1) == 1 && !sigwait(&set, &got)) {
		if (got == SIGCHLD && wait(NULL) > 0)
			continue;
		pthread_create(&thread, NULL, sleep_for_ever, NULL);
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sleep_for_ever(NULL);
		}
	}
	_exit(1);
}

struct child {
	pid_t pid;
	int ready;
	char state[64];			/* a folder */
	struct node_tasks tasks;
	struct act_deed deed;
};

static void child_is_ready(const struct child *child)
{
	char byte;

	assert_int_equal(read(child->ready, &byte, 1), 1);
}

static void child_begin(struct child *child, int policy, int nice)
{
	const struct sched_param none = { .sched_priority = 0 };
	int ends[2];

	*child = (struct child){ .pid = 0 };
	assert_int_equal(pipe(ends), 0);
	child->pid = fork();
	if (!child->pid) {
		sched_setscheduler(0, policy, &none);
		setpriority(PRIO_PROCESS, 0, nice);
		child_run(ends[1]);
	}
	close(ends[1]);
	child->ready = ends[0];
	child_is_ready(child);
	strcpy(child->state, "/tmp/coll-hold.XXXXXX");
	assert_non_null(mkdtemp(child->state));
	assert_int_equal(node_tasks_look(&child->tasks), 0);
}

static void child_grows(const struct child *child)
{
	kill(child->pid, SIGUSR1);
	child_is_ready(child);
}

static void child_end(struct child *child)
{
	char path[128];

	act_deed_free(&child->deed);
	node_tasks_free(&child->tasks);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->ready);
	snprintf(path, sizeof(path), "%s/acts", child->state);
	assert_int_equal(rmdir(path), 0);	/* nothing is left written down */
	assert_int_equal(rmdir(child->state), 0);
}

static int child_hold(struct child *child)
{
	const struct act_wish wish = {
		.form = ACT_FORM_HOLD, .process = node_tasks_find(&child->tasks, child->pid),
		.name = "child", .tasks = &child->tasks,
	};

	assert_non_null(wish.process);
	return act_deed_do(&child->deed, &wish, child->state);
}

/* Of the ordinary policy, and held back. */
static void child_begin_held(struct child *child)
{
	child_begin(child, SCHED_OTHER, 0);
	assert_int_equal(child_hold(child), 0);
}

static void child_undo(struct child *child)
{
	struct act_deed *const one[] = { &child->deed };

	act_deeds_undo(one, 1, child->state);
	assert_true(act_deed_is_undone(&child->deed));
}

static void set_policy(pid_t pid, int policy)
{
	const struct sched_param none = { .sched_priority = 0 };

	assert_int_equal(sched_setscheduler(pid, policy, &none), 0);
}

/* One that it has started. */
static u32 grandchild_of(const struct child *child)
{
	struct node_tasks tasks;
	u32 i, pid = 0;

	assert_int_equal(node_tasks_look(&tasks), 0);
	for (i = 0; i < tasks.count; i++)
		if (tasks.task[i].parent == (u32)child->pid)
			pid = tasks.task[i].pid;
	node_tasks_free(&tasks);
	assert_int_not_equal(pid, 0);
	return pid;
}

/* It has ended, and the child is told so. */
static void child_loses(const struct child *child, u32 pid)
{
	kill(pid, SIGKILL);
	child_is_ready(child);
}

/* Threads and children of this policy; returns how many have another one. */
static u32 others_than(const struct child *child, const char *policy, u32 *count)
{
	struct node_tasks tasks;
	char now[NODE_PRIORITY_TEXT];
	u32 i, others = 0;

	assert_int_equal(node_tasks_look(&tasks), 0);
	for (i = *count = 0; i < tasks.count; i++) {
		if (!node_tasks_below(&tasks, &tasks.task[i], child->pid))
			continue;
		assert_int_equal(node_policy_read(tasks.task[i].tid, now), 0);
		++*count;
		others += strcmp(now, policy) != 0;
	}
	node_tasks_free(&tasks);
	return others;
}

static void all_are(const struct child *child, const char *policy, u32 wanted)
{
	u32 count;

	assert_int_equal(others_than(child, policy, &count), 0);
	assert_int_equal(count, wanted);
}

static void all_threads_are_held_and_let_go(void **state)
{
	struct child child;

	(void)state;
	child_begin(&child, SCHED_BATCH, 3);
	all_are(&child, "batch", 2);
	assert_int_equal(child_hold(&child), 0);
	all_are(&child, "idle", 2);
	child_grows(&child);		/* what it begins inherits that */
	all_are(&child, "idle", 4);
	assert_true(act_deed_set(&child.deed, child.state, false, NULL, 0));
	all_are(&child, "batch", 4);
	child_grows(&child);
	assert_true(act_deed_set(&child.deed, child.state, true, NULL, 0));
	assert_int_equal(sched_getscheduler(child.pid), SCHED_IDLE);
	assert_false(act_deed_is_empty(&child.deed));
	assert_int_equal(getpriority(PRIO_PROCESS, child.pid), 3);
	child_undo(&child);
	all_are(&child, "batch", 6);
	assert_int_equal(getpriority(PRIO_PROCESS, child.pid), 3);
	assert_string_equal(act_deed_text(&child.deed), "was put back");
	child_end(&child);
}

static void what_it_chooses_meanwhile_stays(void **state)
{
	const struct sched_param none = { .sched_priority = 0 };
	struct child child;

	(void)state;
	child_begin_held(&child);
	assert_int_equal(setpriority(PRIO_PROCESS, child.pid, 7), 0);
	assert_int_equal(sched_setscheduler(child.pid, SCHED_BATCH, &none), 0);
	act_deed_set(&child.deed, child.state, false, NULL, 0);
	assert_int_equal(sched_getscheduler(child.pid), SCHED_BATCH);
	/* By its own choice, now: neither this nor the next colld undoes that. */
	assert_int_equal(sched_setscheduler(child.pid, SCHED_IDLE, &none), 0);
	act_deed_set(&child.deed, child.state, true, NULL, 0);
	child_undo(&child);
	assert_int_equal(sched_getscheduler(child.pid), SCHED_IDLE);
	assert_int_equal(getpriority(PRIO_PROCESS, child.pid), 7);
	assert_string_equal(act_deed_text(&child.deed), "was changed by others meanwhile, and left so");
	child_end(&child);
}

/* It is let go: that it is idle now is what it chose. */
static void what_it_chooses_while_it_is_let_go_stays(void **state)
{
	struct child child;

	(void)state;
	child_begin_held(&child);
	assert_true(act_deed_set(&child.deed, child.state, false, NULL, 0));
	set_policy(child.pid, SCHED_IDLE);
	child_undo(&child);
	assert_int_equal(sched_getscheduler(child.pid), SCHED_IDLE);
	child_end(&child);
}

/* Of what it has begun a rank is let go at once, and for good. */
static void a_rank_that_it_starts_is_let_go(void **state)
{
	struct child child;
	u32 rank;

	(void)state;
	child_begin_held(&child);
	child_grows(&child);
	all_are(&child, "idle", 4);
	rank = grandchild_of(&child);
	assert_true(act_deed_set(&child.deed, child.state, true, &rank, 1));
	assert_int_equal(sched_getscheduler(rank), SCHED_OTHER);
	assert_int_equal(sched_getscheduler(child.pid), SCHED_IDLE);
	assert_true(act_deed_set(&child.deed, child.state, false, &rank, 1));
	assert_true(act_deed_set(&child.deed, child.state, true, &rank, 1));
	assert_int_equal(sched_getscheduler(rank), SCHED_OTHER);
	set_policy(rank, SCHED_IDLE);		/* by its own choice */
	child_undo(&child);
	assert_int_equal(sched_getscheduler(rank), SCHED_IDLE);
	assert_int_equal(sched_getscheduler(child.pid), SCHED_OTHER);
	child_end(&child);
}

static void what_has_ended_is_forgotten(void **state)
{
	struct child child;
	u32 pid, count;
	int round;

	(void)state;
	child_begin_held(&child);
	count = child.deed.pinning.count;
	for (round = 0; round < 3; round++) {
		child_grows(&child);
		pid = grandchild_of(&child);
		assert_true(act_deed_set(&child.deed, child.state, true, NULL, 0));
		assert_int_equal(child.deed.pinning.count, count + 2 + round);
		child_loses(&child, pid);
		assert_true(act_deed_set(&child.deed, child.state, false, NULL, 0));
		assert_true(act_deed_set(&child.deed, child.state, true, NULL, 0));
		/* A thread more, and not the process that it has started, too. */
		assert_int_equal(child.deed.pinning.count, count + 1 + round);
	}
	child_undo(&child);
	child_end(&child);
}

/* Where the kernel does not tell the children of a task, too. */
static void its_family_is_found_either_way(void **state)
{
	struct node_tasks told = { .count = 0 }, looked = { .count = 0 };
	struct child child;

	(void)state;
	child_begin(&child, SCHED_OTHER, 0);
	child_grows(&child);
	assert_int_equal(colld_family_look(&told, child.pid), 0);
	assert_int_equal(add_of_all(&looked, child.pid), 0);
	assert_int_equal(told.count, 4);
	assert_int_equal(looked.count, 4);
	assert_int_equal(told.task[3].tid, looked.task[3].tid);
	node_tasks_free(&told);
	node_tasks_free(&looked);
	assert_int_equal(child_hold(&child), 0);
	child_undo(&child);
	child_end(&child);
}

/* What cannot be written down is let go, and not held back until it is. */
static void without_a_file_nothing_is_held_back(void **state)
{
	struct child child;

	(void)state;
	child_begin_held(&child);
	child_grows(&child);
	assert_false(act_deed_set(&child.deed, "/nowhere", false, NULL, 0));
	all_are(&child, "other", 4);
	assert_false(act_deed_set(&child.deed, "/nowhere", true, NULL, 0));
	all_are(&child, "other", 4);
	assert_true(act_deed_set(&child.deed, child.state, true, NULL, 0));
	all_are(&child, "idle", 4);
	child_undo(&child);
	all_are(&child, "other", 4);
	child_end(&child);
}

static void what_is_idle_already_is_left(void **state)
{
	struct child child;

	(void)state;
	child_begin(&child, SCHED_IDLE, 0);
	assert_int_equal(child_hold(&child), -EALREADY);
	all_are(&child, "idle", 2);
	child_end(&child);
}

/* One of two threads is idle by its own choice: it is so afterwards, too. */
static void a_thread_that_was_idle_before_stays(void **state)
{
	const struct sched_param none = { .sched_priority = 0 };
	struct child child;
	u32 i, count;

	(void)state;
	child_begin(&child, SCHED_OTHER, 0);
	for (i = 0; i < child.tasks.count; i++)
		if (child.tasks.task[i].pid == (u32)child.pid && child.tasks.task[i].tid != (u32)child.pid)
			assert_int_equal(sched_setscheduler(child.tasks.task[i].tid, SCHED_IDLE, &none), 0);
	assert_int_equal(child_hold(&child), 0);
	all_are(&child, "idle", 2);
	assert_int_equal(act_deed_set(&child.deed, child.state, false, NULL, 0), true);
	assert_int_equal(others_than(&child, "other", &count), 1);
	child_undo(&child);
	assert_int_equal(others_than(&child, "other", &count), 1);
	child_end(&child);
}

/* A colld that died has left its file: with that alone it is undone. */
static void the_file_alone_undoes(void **state)
{
	const struct sched_param none = { .sched_priority = 0 };
	struct child child, again;

	(void)state;
	child_begin_held(&child);
	child_grows(&child);
	/* By another act it is not held, too: what there was before is not forgotten. */
	assert_int_equal(sched_setscheduler(child.pid, SCHED_OTHER, &none), 0);
	again = child;
	assert_int_equal(child_hold(&again), -EEXIST);
	assert_true(act_deed_recover(child.state, NULL, NULL));
	all_are(&child, "other", 4);
	child_end(&child);
}

static void it_ends_meanwhile(void **state)
{
	struct child child;

	(void)state;
	child_begin_held(&child);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	act_deed_set(&child.deed, child.state, false, NULL, 0);
	assert_true(act_deed_is_empty(&child.deed));
	child_undo(&child);
	assert_string_equal(act_deed_text(&child.deed), "had ended");
	child_end(&child);
}

static void child_path(const struct child *child, const char *name, char path[128])
{
	snprintf(path, 128, "%s/acts/%s", child->state, name);
}

static void write_text(const char *path, const char *text)
{
	FILE *to = fopen(path, "w");

	assert_non_null(to);
	assert_true(fputs(text, to) >= 0);
	assert_int_equal(fclose(to), 0);
}

/* Of what another colld has left. */
static void what_was_not_begun_goes_and_what_cannot_be_read_stays(void **state)
{
	struct child child;
	char begun[128], damaged[128], file[128];

	(void)state;
	child_begin_held(&child);
	child_path(&child, "7000001", begun);
	child_path(&child, "7000002", damaged);
	child_path(&child, "7000002/pin.state", file);
	assert_int_equal(mkdir(begun, 0755), 0);
	assert_int_equal(mkdir(damaged, 0755), 0);
	write_text(file, "no such thing\n");
	assert_false(act_deed_recover(child.state, NULL, NULL));
	all_are(&child, "other", 2);
	assert_int_not_equal(access(begun, F_OK), 0);
	assert_int_equal(unlink(file), 0);
	assert_true(act_deed_recover(child.state, NULL, NULL));
	assert_int_not_equal(access(damaged, F_OK), 0);
	child_end(&child);
}

static bool is_child(const void *data, u32 pid)
{
	return pid == (u32)((const struct child *)data)->pid;
}

static void what_is_in_force_is_not_recovered(void **state)
{
	struct child child;

	(void)state;
	child_begin_held(&child);
	assert_true(act_deed_recover(child.state, is_child, &child));
	all_are(&child, "idle", 2);
	child_undo(&child);
	child_end(&child);
}

/* With one, one file can be opened, and not a folder in another one. */
static void undo_with_descriptors(struct node_pinning *pinning, rlim_t more)
{
	struct rlimit all, few;
	const int next = dup(0);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){ next + more, all.rlim_max };
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	node_pinning_undo(pinning);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
}

/* Tasks wait for that; what is written in a file, as the freezer's is, does not. */
static void without_a_look_at_tasks_the_others_are_undone(void **state)
{
	struct node_pin file = { .kind = NODE_PIN_FILE, .state = NODE_PIN_MOVED };
	struct child child;
	char now[NODE_CPUS_TEXT];

	(void)state;
	child_begin_held(&child);
	snprintf(file.name, sizeof(file.name), "%s/frozen", child.state);
	write_text(file.name, "1\n");
	assert_non_null(node_pinning_add(&child.deed.pinning, &file, "0", "1"));
	undo_with_descriptors(&child.deed.pinning, 0);
	assert_int_equal(node_pinning_find(&child.deed.pinning, &file)->state, NODE_PIN_MOVED);
	undo_with_descriptors(&child.deed.pinning, 1);
	assert_int_equal(node_pinning_find(&child.deed.pinning, &file)->state, NODE_PIN_RESTORED);
	assert_int_equal(node_pin_read(&file, now), 0);
	assert_int_equal(*now, '0');
	assert_false(act_deed_is_undone(&child.deed));
	all_are(&child, "idle", 2);
	child_undo(&child);
	all_are(&child, "other", 2);
	assert_int_equal(unlink(file.name), 0);
	child_end(&child);
}

/* In a process of another user, which may change nothing of others'. */
static int hold_as_another_user(struct child *child)
{
	int status;
	const pid_t pid = fork();

	if (!pid) {
		if (chmod(child->state, 0777) || setuid(64321))
			_exit(255);
		_exit(-child_hold(child));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void who_may_not_does_nothing(void **state)
{
	struct child child;
	char path[128];

	(void)state;
	if (geteuid())
		skip();
	child_begin(&child, SCHED_OTHER, 0);
	assert_int_equal(hold_as_another_user(&child), EPERM);
	all_are(&child, "other", 2);
	snprintf(path, sizeof(path), "%s/acts/%d", child.state, child.pid);
	assert_int_not_equal(access(path, F_OK), 0);
	child_end(&child);
}

static bool has_file(const struct child *child)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/acts/%d/pin.state", child->state, child->pid);
	return !access(path, F_OK);
}

/* It is idle still, and the kernel refuses to have it otherwise. */
static void what_is_refused_is_not_undone(void **state)
{
	struct child child;
	struct act_deed *const one[] = { &child.deed };
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	child_begin_held(&child);
	pid = fork();
	if (!pid) {
		if (setuid(64321) || act_deed_set(&child.deed, child.state, false, NULL, 0))
			_exit(255);
		act_deeds_undo(one, 1, child.state);
		_exit(act_deed_is_undone(&child.deed) || !strstr(act_deed_text(&child.deed), "refuses"));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	all_are(&child, "idle", 2);
	assert_true(has_file(&child));
	child_undo(&child);
	assert_false(has_file(&child));
	all_are(&child, "other", 2);
	child_end(&child);
}

static int drop_capability(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1u << capability);
	return syscall(SYS_capset, &header, data);
}

/* Without the right any user could keep the kernel from taking the former weight. */
static void no_weight_is_written_that_others_can_block(void **state)
{
	struct child child;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	child_begin(&child, SCHED_OTHER, 0);
	pid = fork();
	if (!pid) {
		if (!node_session_may_write() || drop_capability(CAP_SYS_ADMIN) || node_session_may_write())
			_exit(255);
		_exit(child_hold(&child) || act_deed_weighs(&child.deed));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_true(act_deed_recover(child.state, NULL, NULL));
	all_are(&child, "other", 2);
	child_end(&child);
}

/* A task's name may have a line of the file in it. */
static void a_name_is_no_line_of_the_file(void **state)
{
	struct node_pinning pinning = { .count = 0 }, read;
	const struct node_pin pin = { .kind = NODE_PIN_TASK, .state = NODE_PIN_MOVED, .number = 7,
				      .name = "x\nirq 1 0 f f y" };
	char folder[] = "/tmp/coll-hold.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_non_null(node_pinning_add(&pinning, &pin, "1", "0"));
	assert_int_equal(node_pinning_save(&pinning, folder, true), 0);
	assert_int_equal(node_pinning_load(&read, folder), 0);
	assert_int_equal(read.count, 1);
	assert_string_equal(read.pin[0].name, "x?irq 1 0 f f y");
	assert_int_equal(node_pinning_forget(folder), 0);
	assert_int_equal(rmdir(folder), 0);
	node_pinning_free(&pinning);
	node_pinning_free(&read);
}

/* ---- numbers that are used again, and CPUs that go --------------------------------------------- */

static void a_number_of_another_task_is_not_touched(void **state)
{
	struct node_pin pin = { .kind = NODE_PIN_POLICY, .state = NODE_PIN_WANTED };
	struct child child;

	(void)state;
	child_begin(&child, SCHED_OTHER, 0);
	pin.number = child.pid;
	pin.born = node_tasks_find(&child.tasks, child.pid)->born + 1;
	pin.before = (char *)"other";
	pin.after = (char *)"idle";
	node_pin_apply(&pin);
	assert_int_equal(pin.state, NODE_PIN_GONE);
	all_are(&child, "other", 2);
	assert_int_equal(child_hold(&child), 0);
	child_undo(&child);
	child_end(&child);
}

static enum node_pin_place place_of(const char *before, const char *after, const char *now,
				    const char *online)
{
	const struct node_pin pin = { .kind = NODE_PIN_TASK, .before = (char *)before,
				      .after = (char *)after };
	struct node_cpus cpus;

	assert_true(node_cpus_read_list(&cpus, online));
	return node_pin_place(&pin, now, &cpus);
}

static void cpus_that_are_offline_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(place_of("2-3", "0-1", "0-1", "0-3"), NODE_PIN_IS_AFTER);
	assert_int_equal(place_of("2-3", "0-1", "2-3", "0-3"), NODE_PIN_IS_BEFORE);
	assert_int_equal(place_of("2-3", "0-1", "0", "0-3"), NODE_PIN_IS_ELSEWHERE);
	assert_int_equal(place_of("2-3", "0-1", "0", "0,2-3"), NODE_PIN_IS_AFTER);
	assert_int_equal(place_of("2-3", "0-1", "2", "0-2"), NODE_PIN_IS_BEFORE);
	/* The kernel has let it go anywhere: nothing is left of where it was moved to. */
	assert_int_equal(place_of("2-3", "1", "0,2-3", "0,2-3"), NODE_PIN_IS_AFTER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_but_for_a_part_of_each_second),
		cmocka_unit_test(let_go_where_no_rank_is_in_a_collective),
		cmocka_unit_test(all_threads_are_held_and_let_go),
		cmocka_unit_test(what_it_chooses_meanwhile_stays),
		cmocka_unit_test(what_it_chooses_while_it_is_let_go_stays),
		cmocka_unit_test(a_rank_that_it_starts_is_let_go),
		cmocka_unit_test(what_has_ended_is_forgotten),
		cmocka_unit_test(its_family_is_found_either_way),
		cmocka_unit_test(without_a_file_nothing_is_held_back),
		cmocka_unit_test(what_is_idle_already_is_left),
		cmocka_unit_test(a_thread_that_was_idle_before_stays),
		cmocka_unit_test(the_file_alone_undoes),
		cmocka_unit_test(what_was_not_begun_goes_and_what_cannot_be_read_stays),
		cmocka_unit_test(what_is_in_force_is_not_recovered),
		cmocka_unit_test(without_a_look_at_tasks_the_others_are_undone),
		cmocka_unit_test(it_ends_meanwhile),
		cmocka_unit_test(who_may_not_does_nothing),
		cmocka_unit_test(what_is_refused_is_not_undone),
		cmocka_unit_test(no_weight_is_written_that_others_can_block),
		cmocka_unit_test(a_name_is_no_line_of_the_file),
		cmocka_unit_test(a_number_of_another_task_is_not_touched),
		cmocka_unit_test(cpus_that_are_offline_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
