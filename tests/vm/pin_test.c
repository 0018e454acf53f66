// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Pinning: who matches is moved, now and later; who matches no more, and everybody
 * when the rules end, has what he had before, byte for byte.
 *
 * CPU 0 keeps house, CPU 1 is the application's.
 *
 * Length: the plays share the rules, the tasks that they move and how these are followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/netlink.h"
#include "vm.h"

enum { HOUSE = 1, APP = 2, BOTH = 3 };	/* sets of CPUs, as bits */

static struct netlink *netlink;

/* ---- asking ------------------------------------------------------------------------- */

struct rule {
	const char *comm, *cpus;
	uint64_t cgroup;
	uint32_t parent;
	uint32_t uid;
	bool by_uid, kthread, keep;
};
#define RULE(...) ((struct rule){ __VA_ARGS__ })

static void put_rule(struct nl_msg *message, const struct rule *rule)
{
	struct nlattr *nest = nla_nest_start(message, COLL_PIN_A_RULE);

	if (rule->comm)
		nla_put_string(message, COLL_PIN_A_COMM, rule->comm);
	if (rule->cpus)
		nla_put_string(message, COLL_PIN_A_CPUS, rule->cpus);
	if (rule->cgroup)
		nla_put_u64(message, COLL_PIN_A_CGROUP, rule->cgroup);
	if (rule->parent)
		nla_put_u32(message, COLL_PIN_A_PARENT, rule->parent);
	if (rule->by_uid)
		nla_put_u32(message, COLL_PIN_A_UID, rule->uid);
	if (rule->kthread)
		nla_put_flag(message, COLL_PIN_A_KTHREAD);
	if (rule->keep)
		nla_put_flag(message, COLL_PIN_A_KEEP);
	nla_nest_end(message, nest);
}

static int set_on(struct netlink *on, const char *housekeeping, uint32_t linger,
		  const struct rule *rules, int count)
{
	struct nl_msg *message = netlink_message(on, COLL_CMD_PIN_SET, 0);
	int i;

	if (housekeeping)
		nla_put_string(message, COLL_PIN_A_HOUSEKEEPING, housekeeping);
	if (linger)
		nla_put_u32(message, COLL_PIN_A_LINGER, linger);
	for (i = 0; i < count; i++)
		put_rule(message, &rules[i]);
	return netlink_ask(on, message, NULL, NULL);
}

static int set(const struct rule *rules, int count)
{
	int error = set_on(netlink, "0", 0, rules, count);

	if (error)
		vm_note("set: %s", netlink_reason(netlink));
	return error;
}

static int set_comm(const char *comm)
{
	return set(&RULE(.comm = comm), 1);
}

static int clear(void)
{
	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_CLEAR, 0), NULL, NULL);
}

struct found {
	uint32_t pid;			/* wanted task; 0: rules only */
	const char *comm;		/* or by name: a prefix */
	int tasks, rules, state, error, index;
	char saved[64];
	uint64_t matched, moved, refused, changed;	/* of all rules */
	int states[8];			/* of all tasks */
};

static void take_task(struct nlattr **a, struct found *found)
{
	const char *comm = nla_get_string(a[COLL_PIN_A_COMM]);

	found->tasks++;
	found->states[nla_get_u8(a[COLL_PIN_A_STATE]) & 7]++;
	if (nla_get_u32(a[COLL_PIN_A_PID]) != found->pid &&
	    (!found->comm || strncmp(comm, found->comm, strlen(found->comm))))
		return;
	found->state = nla_get_u8(a[COLL_PIN_A_STATE]);
	found->error = a[COLL_PIN_A_ERROR] ? nla_get_u32(a[COLL_PIN_A_ERROR]) : 0;
	found->index = a[COLL_PIN_A_INDEX] ? (int)nla_get_u32(a[COLL_PIN_A_INDEX]) : -1;
	snprintf(found->saved, sizeof(found->saved), "%s", nla_get_string(a[COLL_PIN_A_SAVED]));
}

static int take_answer(enum coll_command command, struct nlattr **a, void *data)
{
	struct found *found = data;

	if (command != COLL_CMD_PIN_GET)
		return -EINVAL;
	if (a[COLL_PIN_A_PID]) {
		take_task(a, found);
		return 0;
	}
	found->rules++;
	found->matched += nla_get_u64(a[COLL_PIN_A_MATCHED]);
	found->moved += nla_get_u64(a[COLL_PIN_A_MOVED]);
	found->refused += nla_get_u64(a[COLL_PIN_A_REFUSED]);
	found->changed += nla_get_u64(a[COLL_PIN_A_CHANGED]);
	return 0;
}

static struct found look_for(uint32_t pid, const char *comm)
{
	struct found found = { .pid = pid, .comm = comm, .state = -1, .index = -1 };

	if (netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_GET, NLM_F_DUMP), take_answer,
			&found))
		vm_note("look: %s", netlink_reason(netlink));
	return found;
}

static struct found look(uint32_t pid)
{
	return look_for(pid, NULL);
}

/* ---- children ------------------------------------------------------------------------- */

static int where(pid_t pid)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (sched_getaffinity(pid, sizeof(cpus), &cpus))
		return -errno;
	return (CPU_ISSET(0, &cpus) ? 1 : 0) | (CPU_ISSET(1, &cpus) ? 2 : 0);
}

/*
 * Does as it is told: 'f' forks, answering the pid; 's' forks for some seconds, answering how
 * often, or -1 if a child was born elsewhere; 'u' becomes nobody; a path is executed, a name
 * is taken on.
 */
struct child {
	pid_t pid;
	int tell, hear;
};

static int put(pid_t pid, int bits)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (bits & HOUSE)
		CPU_SET(0, &cpus);
	if (bits & APP)
		CPU_SET(1, &cpus);
	return sched_setaffinity(pid, sizeof(cpus), &cpus);
}

static void answer(int fd, pid_t pid)
{
	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
}

static int fork_for(uint64_t ns)
{
	uint64_t end = vm_now() + ns;
	int forks = 0, wrong = 0, status;

	while (vm_now() < end) {
		pid_t pid = fork();

		if (!pid)
			_exit(where(0) != HOUSE);
		wrong += waitpid(pid, &status, 0) != pid || status;
		forks++;
	}
	return wrong ? -1 : forks;
}

static void obey(int orders, int answers)
{
	char order[32];
	ssize_t got;
	pid_t pid;

	while ((got = read(orders, order, sizeof(order) - 1)) > 0) {
		order[got] = 0;
		pid = 0;
		if (!strcmp(order, "f")) {
			pid = fork();
			if (!pid) {
				close(orders);
				pause();
				_exit(0);
			}
		} else if (!strcmp(order, "s")) {
			pid = fork_for(3000000000ull);
		} else if (!strcmp(order, "u")) {
			pid = setuid(65534);
		} else if (order[0] == '/') {
			char to[8], from[8];

			snprintf(to, sizeof(to), "%d", orders);
			snprintf(from, sizeof(from), "%d", answers);
			execl(order, order, "obey", to, from, NULL);
			_exit(1);
		} else {
			prctl(PR_SET_NAME, order);
		}
		answer(answers, pid);
	}
	_exit(0);
}

static pid_t order(const struct child *child, const char *what)
{
	pid_t pid = -1;

	if (write(child->tell, what, strlen(what)) < 0 ||
	    read(child->hear, &pid, sizeof(pid)) != sizeof(pid))
		vm_note("a child does not answer to '%s'", what);
	return pid;
}

static struct child born(const char *name, int cpus)
{
	int tell[2], hear[2];
	struct child child = { 0 };

	if (pipe(tell) || pipe(hear))
		return child;
	child = (struct child){ fork(), tell[1], hear[0] };
	if (!child.pid) {
		close(tell[1]);
		close(hear[0]);
		put(0, cpus);
		obey(tell[0], hear[1]);
	}
	close(tell[0]);
	close(hear[1]);
	order(&child, name);
	return child;
}

static void die(struct child *child)
{
	close(child->tell);
	close(child->hear);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

static bool comes_to(pid_t pid, int cpus)
{
	bool came = VM_COMES(where(pid) == cpus);

	if (!came)
		vm_note("process %d is on %d, not %d", pid, where(pid), cpus);
	return came;
}

/* ---- everybody's CPUs, byte for byte ------------------------------------------------------ */

struct everybody {
	int count;
	struct {
		int tid;
		char mask[64];
	} task[1024];
};

static void note_task(struct everybody *all, const char *process, const char *task)
{
	char path[300], text[4096], *line;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/status", process, task);
	if (all->count == 1024 || vm_read(path, text, sizeof(text)))
		return;
	line = strstr(text, "\nCpus_allowed:");
	if (!line)
		return;
	all->task[all->count].tid = atoi(task);
	snprintf(all->task[all->count].mask, 64, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
	all->count++;
}

static void note_everybody(struct everybody *all)
{
	DIR *processes = opendir("/proc"), *tasks;
	struct dirent *process, *task;
	char path[300];

	all->count = 0;
	while (processes && (process = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%s/task", process->d_name);
		tasks = process->d_name[0] >= '1' && process->d_name[0] <= '9' ? opendir(path) : NULL;
		while (tasks && (task = readdir(tasks)))
			if (task->d_name[0] != '.')
				note_task(all, process->d_name, task->d_name);
		if (tasks)
			closedir(tasks);
	}
	if (processes)
		closedir(processes);
}

static bool same(const struct everybody *before, const struct everybody *after)
{
	int i, k, known = 0;
	bool good = true;

	for (i = 0; i < before->count; i++)
		for (k = 0; k < after->count; k++) {
			if (before->task[i].tid != after->task[k].tid)
				continue;
			known++;
			if (strcmp(before->task[i].mask, after->task[k].mask)) {
				vm_note("task %d had %s, has %s", before->task[i].tid,
					before->task[i].mask, after->task[k].mask);
				good = false;
			}
		}
	return good && known > before->count / 2;
}

/* ---- those that are there, those that come ------------------------------------------------- */

static void there_already(void)
{
	static struct everybody before, after;
	struct child a = born("daemon-a", BOTH), b = born("daemon-b", APP);
	struct child c = born("daemon-c", HOUSE), other = born("other", BOTH);
	struct found found;

	note_everybody(&before);
	vm_is(set_comm("daemon-*"), 0, "rules are set");
	vm_is(where(a.pid), HOUSE, "who matches is moved at once");
	vm_is(where(b.pid), HOUSE, "even if it was elsewhere only");
	vm_is(where(other.pid), BOTH, "others are not");
	found = look(a.pid);
	vm_ok(found.state == COLL_PIN_MOVED && !strcmp(found.saved, "0-1"), "it is told what it had");
	found = look(b.pid);
	vm_ok(found.state == COLL_PIN_MOVED && !strcmp(found.saved, "1"), "and the other, too");
	found = look(c.pid);
	vm_is(found.state, COLL_PIN_KEPT, "who was there is kept there");
	vm_ok(found.rules == 1 && found.tasks == 3 && found.matched == 3 && found.moved == 2,
	      "the rule counts them");
	vm_is(clear(), 0, "rules are cleared");
	note_everybody(&after);
	vm_ok(same(&before, &after), "everybody has what he had, byte for byte");
	found = look(a.pid);
	vm_ok(!found.rules && !found.tasks, "nothing is left");
	die(&a), die(&b), die(&c), die(&other);
}

static void those_that_come(void)
{
	struct child late = born("quiet", BOTH), exec = born("quiet", BOTH);
	struct child first = born("daemon-1", BOTH), again;
	pid_t second, third;

	vm_is(set_comm("daemon-*"), 0, "rules are set");
	order(&late, "daemon-late");
	vm_ok(comes_to(late.pid, HOUSE), "who takes on a name is moved");
	order(&late, "quiet");
	vm_ok(comes_to(late.pid, BOTH), "who drops it is given back");

	if (symlink("/bin/pin_test", "/tmp/daemon-exec") && errno != EEXIST)
		vm_note("no link: %s", strerror(errno));
	if (symlink("/bin/pin_test", "/tmp/quiet-exec") && errno != EEXIST)
		vm_note("no link: %s", strerror(errno));
	order(&exec, "/tmp/daemon-exec");
	vm_ok(comes_to(exec.pid, HOUSE), "who execs it is moved");
	order(&exec, "/tmp/quiet-exec");
	vm_ok(comes_to(exec.pid, BOTH), "who execs something else is given back");

	second = order(&first, "f");
	vm_is(where(second), HOUSE, "a child is where its parent is");
	third = order(&first, "f");
	again = born("daemon-2", APP);
	vm_ok(comes_to(again.pid, HOUSE), "who is new is moved");
	vm_is(clear(), 0, "rules are cleared");
	vm_is(where(first.pid), BOTH, "the parent is given back");
	vm_is(where(second), BOTH, "a child what its parent had");
	vm_is(where(third), BOTH, "the other one, too");
	vm_is(where(again.pid), APP, "and who came later what it had");
	kill(second, SIGKILL);
	kill(third, SIGKILL);
	die(&late), die(&exec), die(&first), die(&again);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void by_order_and_place(void)
{
	struct child kept = born("daemon-kept", BOTH), moved = born("daemon-moved", BOTH);
	struct child away = born("away", BOTH);

	vm_is(set((struct rule[]){ RULE(.comm = "daemon-k*", .keep = true), RULE(.comm = "daemon-*"),
				   RULE(.comm = "away", .cpus = "1") }, 3), 0, "three rules");
	vm_is(where(kept.pid), BOTH, "the first that matches decides: kept");
	vm_is(where(moved.pid), HOUSE, "the second moves");
	vm_is(where(away.pid), APP, "the third has a place of its own");
	vm_is(look(away.pid).index, 2, "and is named");
	order(&kept, "daemon-kept2");
	vm_is(look(0).matched, 2, "who is kept is not counted, however often it is seen");
	vm_is(set_comm("daemon-k*"), 0, "other rules take their place");
	vm_is(where(kept.pid), HOUSE, "who matches now is moved");
	vm_is(where(moved.pid), BOTH, "who does not any more is given back");
	vm_is(where(away.pid), BOTH, "so is the third");
	vm_is(clear(), 0, "rules are cleared");
	vm_is(where(kept.pid), BOTH, "all is as it was");
	die(&kept), die(&moved), die(&away);
}

enum { RULES = 1024, PATTERN = 5 };	/* as many as the module takes */

/* Names, with a pattern of some of them at PATTERN and one of all at the end. */
static int set_many(int count)
{
	static char name[RULES + 1][16];
	static struct rule rules[RULES + 1];

	for (int i = 0; i < count; i++) {
		snprintf(name[i], sizeof(name[i]), "name%04d", i);
		rules[i] = RULE(.comm = name[i], .cpus = i % 2 ? "1" : "0");
	}
	rules[PATTERN].comm = "name00?0";
	rules[RULES - 1].comm = "name*";
	return set_on(netlink, "0", 0, rules, count);
}

static void by_many_rules(void)
{
	static const struct {
		const char *name;
		int rule;
	} those[] = { { "name0000", 0 }, { "name0003", 3 }, { "name0030", PATTERN },
		      { "name0601", 601 }, { "name1022", 1022 }, { "nameless", RULES - 1 } };
	enum { THOSE = sizeof(those) / sizeof(*those) };
	struct child child[THOSE], other = born("other", BOTH);
	int i;

	for (i = 0; i < THOSE; i++)
		child[i] = born(those[i].name, BOTH);
	vm_is(set_many(RULES + 1), -EINVAL, "refused: 1025 rules");
	vm_is(set_many(RULES), 0, "1024 rules");
	for (i = 0; i < THOSE; i++) {
		vm_is(look(child[i].pid).index, those[i].rule, those[i].name);
		vm_is(where(child[i].pid), those[i].rule % 2 ? APP : HOUSE, "and is there");
	}
	vm_is(where(other.pid), BOTH, "who matches none is not moved");
	order(&other, "name0602");
	vm_ok(comes_to(other.pid, HOUSE), "who takes on such a name is");
	vm_is(clear(), 0, "rules are cleared");
	for (i = 0; i < THOSE; i++)
		die(&child[i]);
	die(&other);
}

static void by_uid(void)
{
	struct child nobody = born("somebody", BOTH);

	vm_is(set(&RULE(.by_uid = true, .uid = 65534), 1), 0, "a rule for a uid");
	vm_is(where(nobody.pid), BOTH, "others are not moved");
	order(&nobody, "u");
	vm_ok(comes_to(nobody.pid, HOUSE), "who becomes it is");
	clear();
	die(&nobody);
}

static void by_parent(void)
{
	struct child parent = born("parent", BOTH);
	pid_t before = order(&parent, "f"), after;

	vm_is(set(&RULE(.parent = parent.pid), 1), 0, "a rule for who descends from a process");
	vm_is(where(parent.pid), BOTH, "it is not moved itself");
	vm_is(where(before), HOUSE, "its child is");
	after = order(&parent, "f");
	vm_ok(comes_to(after, HOUSE), "and one that comes later");
	die(&parent);
	vm_sleep_ms(1500);
	vm_is(where(after), HOUSE, "also when the parent has died");
	clear();
	vm_is(where(after), BOTH, "given back");
	kill(before, SIGKILL);
	kill(after, SIGKILL);
}

/* A chain of processes, each the child of the one before; `pids` is shared with them. */
static void nest(volatile pid_t *pids, int depth, int deepest)
{
	pid_t pid = depth <= deepest ? fork() : -1;

	if (pid) {
		if (depth > 1)
			pause();
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pids[depth] = getpid();
	nest(pids, depth + 1, deepest);
	pause();
	_exit(0);
}

/* So that who nests thousands of processes does not cost thousands of steps for each. */
static void by_depth(void)
{
	enum { FOLLOWED = 256, DEEPEST = 260 };
	volatile pid_t *pids = mmap(NULL, (DEEPEST + 1) * sizeof(pid_t), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (pids == MAP_FAILED) {
		vm_ok(false, "memory for the chain");
		return;
	}
	put(0, BOTH);
	nest(pids, 1, DEEPEST);
	vm_ok(VM_COMES(pids[DEEPEST]), "a chain of processes");
	vm_is(set(&RULE(.parent = getpid()), 1), 0, "a rule for who descends from its first");
	vm_ok(comes_to(pids[1], HOUSE), "its child is moved");
	vm_ok(comes_to(pids[FOLLOWED], HOUSE), "so is the 256th below it");
	vm_is(where(pids[FOLLOWED + 1]), BOTH, "the next is too deep");
	vm_is(clear(), 0, "rules are cleared");
	vm_ok(comes_to(pids[FOLLOWED], BOTH), "all is as it was");
	kill(pids[1], SIGKILL);
	waitpid(pids[1], NULL, 0);
	munmap((void *)pids, (DEEPEST + 1) * sizeof(pid_t));
}

/* Whom a cpuset keeps on the application's CPU no rule takes away from there. */
static void by_cpuset(const struct child *inside)
{
	struct found found;

	if (vm_write("/tmp/cgroup/cgroup.subtree_control", "+cpuset") ||
	    vm_write("/tmp/cgroup/daemons/cpuset.cpus", "1") || where(inside->pid) != APP) {
		vm_skip("by cpuset", "no cpusets here");
		return;
	}
	order(inside, "daemon-set");
	vm_is(set_comm("daemon-*"), 0, "a rule for who is in a cpuset");
	found = look(inside->pid);
	vm_ok(found.state == COLL_PIN_REFUSED && found.error == EINVAL && found.refused == 1,
	      "which does not have the CPU: refused, and why");
	vm_is(where(inside->pid), APP, "it is not moved");
	vm_write("/tmp/cgroup/daemons/cpuset.cpus", "0-1");
	vm_is(set_comm("daemon-s*"), 0, "when the cpuset has it,");
	vm_is(where(inside->pid), HOUSE, "it is");
	clear();
	vm_is(where(inside->pid), BOTH, "and given back");
	vm_write("/tmp/cgroup/cgroup.subtree_control", "-cpuset");
}

/* ---- an exec while the threads of its process are looked at ---- */

enum { EXECS = 300 };

static void *exec_and_stay(void *unused)
{
	execl("/proc/thread-self/exe", "pin_test", "stays", NULL);
	_exit(unused != NULL);
}

/* By the exec a thread becomes the leader of its process, whose leader has ended before. */
static pid_t born_to_exec(int *runs)
{
	pthread_t thread;
	int pipes[2];
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		return -1;
	child = fork();
	if (!child) {
		put(0, APP);
		if (pthread_create(&thread, NULL, exec_and_stay, NULL))
			_exit(1);
		syscall(SYS_exit, 0);
	}
	close(pipes[1]);
	*runs = pipes[0];
	return child;
}

/* A look at a process whose leader changes meanwhile has an end: other rules can be set. */
static void by_leaders(uint64_t cgroup)
{
	static const char *const places[] = { "/tmp/cgroup/daemons/cgroup.procs", "/tmp/cgroup/cgroup.procs" };
	int runs, moves = 0, sets = 0, i;
	char byte, pid[16];

	vm_run_on(0);
	for (i = 0; i < EXECS; i++) {
		const pid_t child = born_to_exec(&runs);

		snprintf(pid, sizeof(pid), "%d", child);
		while (read(runs, &byte, 1) < 0)
			vm_write(places[moves++ % 2], pid);
		close(runs);
		sets += !set(&RULE(.cgroup = cgroup), 1);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	put(0, BOTH);
	vm_is(sets, EXECS, "rules are set after each exec by a thread");
	vm_ok(moves >= EXECS, "whose process was moved %d times meanwhile", moves);
	vm_is(clear(), 0, "rules are cleared");
}

static void by_cgroup(void)
{
	struct child inside = born("inside", BOTH), later = born("later", BOTH);
	struct stat folder;
	char pid[16];

	mkdir("/tmp/cgroup", 0755);
	if (mount("cgroup2", "/tmp/cgroup", "cgroup2", 0, NULL) ||
	    (mkdir("/tmp/cgroup/daemons", 0755) && errno != EEXIST) ||
	    stat("/tmp/cgroup/daemons", &folder)) {
		vm_skip("by cgroup", "no cgroup2 here");
	} else {
		snprintf(pid, sizeof(pid), "%d", inside.pid);
		vm_write("/tmp/cgroup/daemons/cgroup.procs", pid);
		vm_is(set(&RULE(.cgroup = folder.st_ino), 1), 0, "a rule for a cgroup");
		vm_is(where(inside.pid), HOUSE, "who is in it is moved");
		vm_is(where(later.pid), BOTH, "others are not");
		snprintf(pid, sizeof(pid), "%d", later.pid);
		vm_write("/tmp/cgroup/daemons/cgroup.procs", pid);
		vm_ok(comes_to(later.pid, HOUSE), "who comes into it is");
		vm_write("/tmp/cgroup/cgroup.procs", pid);
		vm_ok(comes_to(later.pid, BOTH), "who leaves it is given back");
		clear();
		vm_is(where(inside.pid), BOTH, "all is as it was");
		by_leaders(folder.st_ino);
		by_cpuset(&inside);
	}
	die(&inside), die(&later);
}

static void kernel_threads(void)
{
	static struct everybody before, after;
	struct found found;

	note_everybody(&before);
	vm_is(set((struct rule[]){ RULE(.kthread = true, .comm = "coll*", .keep = true),
				   RULE(.kthread = true) }, 2), 0, "a rule for kernel threads");
	found = look_for(0, "kswapd");
	vm_is(found.state, COLL_PIN_MOVED, "kswapd is moved");
	found = look_for(0, "ksoftirqd/1");
	vm_is(found.state, COLL_PIN_PER_CPU, "ksoftirqd/1 belongs to its CPU");
	found = look_for(0, "kworker/u");
	if (found.tasks)
		vm_ok(found.state == COLL_PIN_REFUSED && found.error == EPERM,
		      "kworker/u* is the workqueues' to place");
	vm_ok(found.states[COLL_PIN_MOVED] > 3 && found.states[COLL_PIN_PER_CPU] > 3,
	      "%d moved, %d per CPU, %d refused", found.states[COLL_PIN_MOVED],
	      found.states[COLL_PIN_PER_CPU], found.states[COLL_PIN_REFUSED]);
	vm_is(look_for(0, "pin_test").state, -1, "no process is touched");
	vm_is(clear(), 0, "rules are cleared");
	note_everybody(&after);
	vm_ok(same(&before, &after), "every thread has what it had, byte for byte");
}

/* ---- somebody else --------------------------------------------------------------------------- */

static int changed_events, over_events;
static char last_name[32], last_reason[128];

static int take_event(enum coll_command command, struct nlattr **a, void *data)
{
	(void)data;
	if (command != COLL_CMD_EVENT)
		return -EINVAL;
	changed_events += nla_get_u8(a[COLL_EVENT_A_KIND]) == COLL_EVENT_PIN_CHANGED;
	over_events += nla_get_u8(a[COLL_EVENT_A_KIND]) == COLL_EVENT_PIN_ENDED;
	if (a[COLL_EVENT_A_NAME])
		snprintf(last_name, sizeof(last_name), "%s", nla_get_string(a[COLL_EVENT_A_NAME]));
	if (a[COLL_EVENT_A_REASON])
		snprintf(last_reason, sizeof(last_reason), "%s",
			 nla_get_string(a[COLL_EVENT_A_REASON]));
	return 0;
}

static void hear(struct netlink *ears, int ms)
{
	struct pollfd ready = { netlink_fd(ears), POLLIN, 0 };

	while (poll(&ready, 1, ms) == 1)
		netlink_events(ears, take_event, NULL);
}

static void somebody_else(void)
{
	struct child daemon = born("daemon-x", BOTH), still = born("daemon-y", BOTH);
	struct netlink *ears;

	netlink_open(&ears);
	netlink_listen(ears);
	set_comm("daemon-*");
	vm_is(where(daemon.pid), HOUSE, "pinned");
	put(daemon.pid, APP);
	if (VM_COMES((hear(ears, 100), changed_events)))
		hear(ears, 2500);
	vm_is(changed_events, 1, "that somebody else moved it is told, once");
	vm_says(last_name, "daemon-x", "with its name");
	vm_is(where(daemon.pid), APP, "it is left alone");
	vm_is(look(daemon.pid).state, COLL_PIN_CHANGED, "and shown so");
	vm_is(look(daemon.pid).changed, 1, "and counted");
	set_comm("daemon*");
	vm_is(where(daemon.pid), APP, "new rules do not fight either");
	clear();
	hear(ears, 100);
	vm_is(over_events, 1, "the end is told");
	vm_is(where(daemon.pid), APP, "it is not given back what it had");
	vm_is(where(still.pid), BOTH, "the other one is");
	netlink_close(ears);
	die(&daemon), die(&still);
}

static void cpu_gone(void)
{
	struct child app = born("daemon-app", APP), both = born("daemon-both", BOTH);

	set_comm("daemon-*");
	vm_is(vm_cpu_online(1, false), 0, "the application's CPU goes offline");
	clear();
	vm_ok(where(app.pid) > 0 && where(both.pid) & HOUSE, "all are given a place to run");
	vm_is(vm_cpu_online(1, true), 0, "it comes back");
	vm_is(where(both.pid), BOTH, "who had both has both");
	die(&app), die(&both);
}

/* The only CPU of a rule: the scheduler then places its tasks, and nobody else has changed them. */
static void rule_cpu_gone(void)
{
	struct child far = born("daemon-far", BOTH), back = born("daemon-back", BOTH);

	set((struct rule[]){ RULE(.comm = "daemon-far", .cpus = "1"), RULE(.comm = "daemon-back", .cpus = "1") }, 2);
	vm_is(where(far.pid), APP, "a rule with one CPU");
	vm_is(vm_cpu_online(1, false), 0, "it goes offline");
	order(&far, "daemon-far");	/* it wakes up: so it must be somewhere */
	vm_sleep_ms(3000);
	vm_ok(where(far.pid) & HOUSE, "the scheduler places who was there");
	vm_is(look(far.pid).state, COLL_PIN_MOVED, "nobody else has changed who was there");
	kill(back.pid, SIGSTOP);	/* it wakes up late, and no probe tells of that */
	kill(back.pid, SIGCONT);
	vm_ok(VM_COMES(where(back.pid) & HOUSE), "nor who wakes up later");
	vm_is(vm_cpu_online(1, true), 0, "it comes back");
	vm_ok(comes_to(far.pid, APP), "and so does who was there");
	vm_ok(comes_to(back.pid, APP), "and who woke up later");
	vm_is(vm_cpu_online(1, false), 0, "it goes offline again");
	order(&far, "daemon-far");
	vm_sleep_ms(3000);
	clear();
	vm_is(vm_cpu_online(1, true), 0, "it comes back when the rule is cleared");
	vm_ok(where(far.pid) == BOTH && where(back.pid) == BOTH, "all have what they had");
	die(&far), die(&back);
}

/* ---- owners -------------------------------------------------------------------------------- */

/* A child that sets rules, and waits to be killed. */
static pid_t owner(uint32_t linger)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		struct netlink *mine;

		if (netlink_open(&mine) || set_on(mine, "0", linger, &RULE(.comm = "daemon-*"), 1))
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		vm_note("the owner died");
	close(ready[0]);
	return pid;
}

static void kill_owner(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void owners(void)
{
	struct child daemon = born("daemon-x", BOTH);
	pid_t pid = owner(0);

	vm_is(where(daemon.pid), HOUSE, "another process has rules");
	vm_is(set_on(netlink, "0", 0, &RULE(.comm = "x"), 1), -EBUSY, "there is one owner");
	vm_says(netlink_reason(netlink), "somebody else's rules hold", "and others are told so");
	vm_is(clear(), -EBUSY, "nor may others clear them");
	kill_owner(pid);
	vm_is(where(daemon.pid), BOTH, "killed, its rules are gone with it");

	pid = owner(60000);
	kill_owner(pid);
	vm_is(where(daemon.pid), HOUSE, "rules that linger stay");
	vm_is(set_comm("daemon-*"), 0, "for another to take over");
	vm_is(where(daemon.pid), HOUSE, "nobody was moved for that");
	vm_ok(!strcmp(look(daemon.pid).saved, "0-1"), "what it had is not forgotten");
	vm_is(clear(), 0, "rules are cleared");
	vm_is(where(daemon.pid), BOTH, "and given back");

	pid = owner(2000);
	kill_owner(pid);
	vm_is(where(daemon.pid), HOUSE, "rules that linger for 2 s");
	vm_ok(comes_to(daemon.pid, BOTH), "end then");

	set_comm("daemon-*");
	vm_is(vm_unload(), 0, "coll.ko is unloaded with rules");
	vm_is(where(daemon.pid), BOTH, "they are gone with it");
	netlink_close(netlink);
	vm_is(vm_load(""), 0, "loaded again");
	vm_is(netlink_open(&netlink), 0, "it answers");
	die(&daemon);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void refused(const char *housekeeping, uint32_t linger, struct rule rule, int error,
		    const char *reason)
{
	char what[128];

	snprintf(what, sizeof(what), "refused: %s", reason);
	if (!vm_is(set_on(netlink, housekeeping, linger, &rule, 1), error, what))
		clear();
	vm_says(netlink_reason(netlink), reason, "and it says so");
}

static void refusals(void)
{
	char long_glob[80];
	int status;
	pid_t nobody;

	memset(long_glob, 'x', sizeof(long_glob));
	long_glob[79] = 0;
	refused(NULL, 0, RULE(.comm = "x"), -EINVAL, "housekeeping: missing");
	refused("", 0, RULE(.comm = "x"), -EINVAL, "cpus: a list such as");
	refused("7", 0, RULE(.comm = "x"), -ENXIO, "cpus: some are not there");
	refused("0", 600001, RULE(.comm = "x"), -ERANGE, "linger: at most 600000");
	refused("0", 0, RULE(.cpus = "0"), -EINVAL, "rule: needs comm, cgroup, uid");
	refused("0", 0, RULE(.comm = "x", .cpus = "zero"), -EINVAL, "cpus: a list such as");
	refused("0", 0, RULE(.cgroup = 1ull << 60), -ENOENT, "cgroup: no cgroup has this id");
	refused("0", 0, RULE(.parent = 4000000), -ESRCH, "parent: no process has this pid");
	refused("0", 0, RULE(.by_uid = true, .uid = ~0u), -EINVAL, "uid: below");
	refused("0", 0, RULE(.comm = long_glob), -EINVAL, "comm");
	vm_is(set_on(netlink, "0", 0, NULL, 0), -EINVAL, "refused: no rule");
	vm_says(netlink_reason(netlink), "rule: 1 to 1024", "and it says so");
	vm_is(clear(), 0, "clearing nothing is no error");
	nobody = fork();
	if (!nobody) {
		struct netlink *mine;

		_exit(setuid(65534) || netlink_open(&mine) ||
		      set_on(mine, "0", 0, &RULE(.comm = "x"), 1) != -EPERM);
	}
	waitpid(nobody, &status, 0);
	vm_is(status, 0, "nobody may not");
}

/* ---- a storm --------------------------------------------------------------------------------- */

enum { FORKERS = 2, AT_ONCE = 8 };

/* What came of a storm, in memory that all share. */
struct tally {
	int processes, wrong, late;
	uint64_t begin, period;		/* ns; of a forker's turns, 0: as fast as they go */
};

/* /bin/storm by another name, which the rules know: a child for each letter. */
static pid_t storm_process(const char *children)
{
	char *const arguments[] = { "storm-exec", (char *)children, NULL };
	static char *const none[] = { NULL };
	const pid_t pid = vfork();

	if (!pid) {
		execve("/tmp/storm-exec", arguments, none);
		_exit(99);
	}
	return pid;
}

/* Waits for the turn's time; one that begins when the next should is late. */
static void await_turn(struct tally *tally, int turn)
{
	const uint64_t due = tally->begin + turn * tally->period;
	const struct timespec time = { due / 1000000000, due % 1000000000 };

	if (!tally->period)
		return;
	if (vm_now() >= due + tally->period)
		__atomic_add_fetch(&tally->late, 1, __ATOMIC_RELAXED);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void forker(struct tally *tally, int processes, const char *children)
{
	int status, at_work, turn = 0;

	while (processes > 0) {
		await_turn(tally, turn++);
		for (at_work = 0; at_work < AT_ONCE && storm_process(children) > 0; at_work++)
			;
		processes -= at_work;
		while (at_work && wait(&status) > 0) {
			at_work--;
			__atomic_add_fetch(&tally->processes, 1, __ATOMIC_RELAXED);
			if (status)
				__atomic_add_fetch(&tally->wrong, 1, __ATOMIC_RELAXED);
		}
	}
	_exit(0);
}

/*
 * So many forks and execs, `rate` a second or (0) as fast as they go, from several
 * processes that may run anywhere: who matches never computes on the application's CPU,
 * nor do its children.
 */
static void storm(int most, const char *children, int rate)
{
	const int each = 2 + strlen(children);
	static struct everybody before, after;
	struct tally *tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[FORKERS];
	double seconds;
	int i;

	if (symlink("/bin/storm", "/tmp/storm-exec") && errno != EEXIST)
		vm_note("no link: %s", strerror(errno));
	note_everybody(&before);
	vm_is(set_comm("storm-*"), 0, "rules are set");
	if (rate)
		tally->period = 1000000000ull * FORKERS * AT_ONCE * each / rate;
	tally->begin = vm_now();
	for (i = 0; i < FORKERS; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			vm_run_on(1);
			put(0, BOTH);
			forker(tally, most / each / FORKERS + AT_ONCE, children);
		}
	}
	for (i = 0; i < FORKERS; i++)
		waitpid(pid[i], NULL, 0);
	seconds = (vm_now() - tally->begin) / 1e9;
	vm_note("%d forks and execs, %.0f a second for %.1f s", tally->processes * each,
		tally->processes * each / seconds, seconds);
	vm_ok(tally->processes * each >= most, "a storm of %d forks and execs",
	      tally->processes * each);
	if (rate)
		vm_is(tally->late, 0, "at the rate that was asked for, all the time");
	if (getenv("NO_TASK_WORK"))
		vm_skip("all were where they belong before they computed",
			"this kernel exports no task_work_add: soon after");
	else
		vm_is(tally->wrong, 0, "all were where they belong before they computed");
	vm_note("%d were not", tally->wrong);
	vm_ok(look(0).matched >= (uint64_t)tally->processes, "the rule counts them all");
	vm_is(clear(), 0, "rules are cleared");
	note_everybody(&after);
	vm_ok(same(&before, &after), "everybody has what he had");
	munmap(tally, sizeof(*tally));
}

/* A pinned process that forks without an end: no child keeps its parent's CPUs. */
static void storm_of_children(void)
{
	struct child daemon = born("daemon-forks", BOTH);
	pid_t child[32];
	int i, k, wrong = 0, forks;

	set_comm("daemon-*");
	forks = order(&daemon, "s");
	vm_note("%d forks a second", forks / 3);
	vm_ok(forks > 0, "children of a pinned process are born where they belong, all of them");
	clear();

	for (k = 0; k < 12; k++) {
		pid_t forking;

		set_comm("daemon-*");
		forking = fork();
		if (!forking) {
			prctl(PR_SET_NAME, "noisy");
			vm_sleep_ms(k);
			_exit(clear() ? 1 : 0);
		}
		for (i = 0; i < 32; i++)
			child[i] = order(&daemon, "f");
		waitpid(forking, NULL, 0);
		clear();
		for (i = 0; i < 32; i++) {
			wrong += where(child[i]) != BOTH;
			kill(child[i], SIGKILL);
		}
	}
	vm_is(wrong, 0, "children born while the rules end are given back, too");
	die(&daemon);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "obey")) {
		answer(atoi(argv[3]), 0);
		obey(atoi(argv[2]), atoi(argv[3]));
	}
	if (argc == 2 && !strcmp(argv[1], "stays"))
		pause();
	signal(SIGPIPE, SIG_IGN);
	if (!vm_is(netlink_open(&netlink), 0, "a socket"))
		return vm_end();
	if (argc >= 4 && !strcmp(argv[1], "storm")) {	/* 10000 cccc [RATE]: see storm() */
		storm(atoi(argv[2]), argv[3], argc > 4 ? atoi(argv[4]) : 0);
		return vm_end();
	}
	refusals();
	there_already();
	those_that_come();
	by_order_and_place();
	by_many_rules();
	by_uid();
	by_parent();
	by_depth();
	by_cgroup();
	kernel_threads();
	somebody_else();
	cpu_gone();
	rule_cpu_gone();
	owners();
	storm(10000, "cccccc", 0);
	storm_of_children();
	netlink_close(netlink);
	return vm_end();
}
