// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What operators and users write: colld's policy, its file of circuits, and the library's options.
 * Refused with a reason, or taken.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/circuit/setup.h"
#include "libcoll/base/options.h"
#include "node/rules.h"
#include "fuzz.h"

enum { WHY = 300 };

static void try_rules(const char *text)
{
	static const struct node_task task = { .pid = 77, .comm = "kworker/0:1" };
	struct coll_text_error error = { 0 };
	struct node_rules rules;

	if (node_rules_parse(text, &rules, &error)) {
		fuzz_must(error.reason[0] && error.line, "refused without a reason");
	} else {
		node_rules_irq(&rules, 12, "eth0-rx");
		node_rules_task(&rules, &task, &(struct node_tasks){ 0 });
	}
	node_rules_free(&rules);
}

/* It reads files only. */
static void try_circuits(const char *text)
{
	static struct circuit_setup setup;
	static int fd = -1;
	const size_t bytes = strlen(text);
	char path[64], why[WHY] = "";
	u32 i, j;

	if (fd < 0)
		fd = memfd_create("circuits", 0);
	fuzz_must(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, text, bytes, 0) == (ssize_t)bytes,
		  "no file in memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (circuit_setup_read(path, &setup, why, sizeof(why))) {
		fuzz_must(why[0], "refused without a reason");
		return;
	}
	fuzz_must(setup.nodes >= 2 && setup.nodes <= CIRCUIT_NODES_MAX, "too many nodes");
	for (i = 0; i < setup.nodes; i++) {
		fuzz_must(setup.node[i].ports <= COLL_CIRCUIT_PORTS_MAX, "too many ports");
		for (j = 0; j < setup.node[i].ports; j++)
			fuzz_must(circuit_setup_port(&setup, i, j) > 0, "a port that is none");
		fuzz_must(circuit_setup_node(&setup, setup.node[i].name) == i, "a name twice");
	}
}

static void try_options(const char *text)
{
	static struct coll_options options;
	static bool begun;
	char why[WHY] = "";

	if (!begun)
		fuzz_must(!coll_options_init(&options, why, sizeof(why)), "the environment is wrong");
	begun = true;
	if (coll_options_parse(&options, text, why, sizeof(why)))
		fuzz_must(why[0], "refused without a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text;
	uint8_t which;

	if (!bytes)
		return 0;
	which = *data++ % 3;
	text = malloc(bytes);		/* of exactly this size: no byte beyond is read */
	memcpy(text, data, bytes - 1);
	text[bytes - 1] = 0;
	if (!which)
		try_rules(text);
	else if (which == 1)
		try_circuits(text);
	else
		try_options(text);
	free(text);
	return 0;
}

void fuzz_seeds(take_seed *take, void *argument)
{
	static const char *const texts[] = {
		"\3housekeeping 0-1,8\napplication 2-7\nkeep comm=sshd* uid=0\npin kthread comm=kswapd* "
		"to=0\npin irq=eth0-*\nkeep parent=1234\nworkqueues # all\n",
		"\3window cgroup=/backup period=1s open=50ms phase=0s\nstop cgroup=/batch\n"
		"stop unit=cron.service\npin cgroup=/system.slice/*\n",
		"\3act hold share=2.5% for=1h most=3 leave=20%\nhold cgroup=/system.slice/backup.service\n"
		"hold cgroup=/batch\nact advise\n",
		"\1socket /run/x\nswitch fake delay=2ms\nnode a 1,2 10.0.0.1\nnode b 3,4 fe80::1\n"
		"node c 5\nkernel a 24\nlimit 9\nretries 3\nlease 20ms\ngrace 1ms\nkeep 5s\n"
		"timeout 1s\nretry 2s\nreconcile 250ms # often\n",
		"\1switch scpi 10.0.0.9:5025\nnode a 1\nnode b 2\n",
		"\2deadline=2s progress=thread allreduce=butterfly-redundant:T=2 spin=100us",
		"\2barrier=dissemination link_policy=occupancy-hier chunk=64K inject=noise:rank=1 "
		"address=127.0.0.1,::1 protect=seal wan_buffer=8M clusters=0-3,4-7",
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		take(texts[i], strlen(texts[i]), argument);
}
