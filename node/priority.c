// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "priority.h"
#include "small_file.h"

const char node_policy_idle[] = "idle", node_session_least[] = "19";

/* In effect: without a library for it. All of them are below 32. */
static bool has_capability(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) && data[0].effective & 1u << capability;
}

/* ---- the policy ------------------------------------------------------------- */

/* By the kernel's numbers. */
static const char *const policies[] = { "other", "fifo", "rr", "batch", NULL, "idle", "deadline" };
enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

int node_policy_read(u32 tid, char text[NODE_PRIORITY_TEXT])
{
	const int found = sched_getscheduler(tid);
	const int policy = found & ~SCHED_RESET_ON_FORK;

	if (found < 0)
		return -errno;
	if (policy < POLICIES && policies[policy])
		snprintf(text, NODE_PRIORITY_TEXT, "%s", policies[policy]);
	else
		snprintf(text, NODE_PRIORITY_TEXT, "%d", policy);
	return 0;
}

bool node_policy_yields(const char *text)
{
	return !strcmp(text, "other") || !strcmp(text, "batch");
}

bool node_policy_may_return(void)
{
	return has_capability(CAP_SYS_NICE);
}

int node_policy_write(u32 tid, const char *text)
{
	/* The kernel keeps the nice value while the policy is idle, and gives it back. */
	const struct sched_param none = { .sched_priority = 0 };
	const int found = sched_getscheduler(tid);
	int policy;

	if (found < 0)
		return -errno;
	if (!node_policy_yields(text) && strcmp(text, node_policy_idle))
		return -EINVAL;
	for (policy = 0; !policies[policy] || strcmp(policies[policy], text); policy++)
		;
	return sched_setscheduler(tid, policy | (found & SCHED_RESET_ON_FORK), &none) ? -errno : 0;
}

/* ---- the session's weight ------------------------------------------------------ */

static void session_path(u32 pid, char path[64])
{
	snprintf(path, 64, "/proc/%u/autogroup", pid);
}

static bool sessions_have_weights(void)
{
	char text[16];

	return node_read_small("/proc/sys/kernel/sched_autogroup_enabled", text, sizeof(text)) &&
	       *text == '1';
}

int node_session_read(u32 pid, char text[NODE_PRIORITY_TEXT])
{
	char path[64], line[64];
	int nice;

	session_path(pid, path);
	if (!sessions_have_weights() || !node_read_small(path, line, sizeof(line)) ||
	    sscanf(line, "/autogroup-%*d nice %d", &nice) != 1)
		return -ENOENT;
	snprintf(text, NODE_PRIORITY_TEXT, "%d", nice);
	return 0;
}

bool node_session_may_write(void)
{
	return has_capability(CAP_SYS_ADMIN);
}

int node_session_write(u32 pid, const char *text)
{
	char path[64];

	session_path(pid, path);
	return node_write_small(path, text);
}
