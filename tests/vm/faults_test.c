// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Memory that is not there: every command is given again and again, and each time
 * the next one of the kernel's allocations fails, until none is left to fail.
 * What comes of it is an error or a success; nothing is left, and all works as
 * before. On kernels that can (the debug kernel): /proc/thread-self/fail-nth.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

#define FAIL_NTH "/proc/thread-self/fail-nth"

enum { ALLOCATIONS_MAX = 2000, COUNT = 1000 };

/* ---- faults --------------------------------------------------------------------- */

static bool can_fail(void)
{
	static const char *const files[] = {
		"failslab/verbose", "fail_page_alloc/verbose", "failslab/ignore-gfp-wait",
		"fail_page_alloc/ignore-gfp-wait", "fail_page_alloc/min-order",
	};
	char path[80];

	if (access(FAIL_NTH, W_OK))
		return false;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", files[i]);
		if (vm_write(path, strstr(path, "ignore") ? "N" : "0"))
			vm_note("no %s", path);
	}
	return true;
}

static void fail_at(int allocation)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", allocation);
	vm_write(FAIL_NTH, text);
}

/* Whether one did. */
static bool has_failed(void)
{
	char text[16];

	vm_read(FAIL_NTH, text, sizeof(text));
	vm_write(FAIL_NTH, "0");
	return atoi(text) == 0;
}

/* ---- the family ------------------------------------------------------------------- */

static struct netlink *netlink;

static int nothing(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command, (void)attributes, (void)data;
	return 0;
}

static int count(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command, (void)attributes;
	++*(int *)data;
	return 0;
}

static int ask(enum coll_command command, int flags)
{
	return netlink_ask(netlink, netlink_message(netlink, command, flags), nothing, NULL);
}

static struct nl_msg *noise_message(uint8_t context)
{
	static const struct coll_noise_span table[] = { { 0, 5000 }, { 500000, 700 } };
	const struct coll_noise_model model = {
		.arrival = COLL_NOISE_REPLAY, .length = COLL_NOISE_TABLE, .period = 10000000,
	};
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, context);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	nla_put(message, COLL_NOISE_A_TABLE, sizeof(table), table);
	nla_put_u32(message, COLL_NOISE_A_LOG, 5000);
	return message;
}

static int noise_in_an_interrupt(void)
{
	return netlink_ask(netlink, noise_message(COLL_NOISE_HARDIRQ), nothing, NULL);
}

static int noise_in_a_thread(void)
{
	return netlink_ask(netlink, noise_message(COLL_NOISE_FIFO), nothing, NULL);
}

static int noise_get(void)
{
	return ask(COLL_CMD_NOISE_GET, NLM_F_DUMP);
}

static int noise_log(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_LOG, NLM_F_DUMP);
	int error;

	nla_put_u32(message, COLL_NOISE_A_ID, 1);
	error = netlink_ask(netlink, message, nothing, NULL);
	return error == -ENOENT ? 0 : error;
}

static int noise_stop(void)
{
	return ask(COLL_CMD_NOISE_STOP, 0);
}

static int watch_start(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "0-1");
	nla_put_u32(message, COLL_WATCH_A_TASK, getpid());
	nla_put_u32(message, COLL_WATCH_A_LOG, 5000);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int watch_get(void)
{
	return ask(COLL_CMD_WATCH_GET, NLM_F_DUMP);
}

static int watch_log(void)
{
	return ask(COLL_CMD_WATCH_LOG, NLM_F_DUMP);
}

static int pin_set(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_PIN_SET, 0);
	struct nlattr *nest;

	nla_put_string(message, COLL_PIN_A_HOUSEKEEPING, "0");
	nest = nla_nest_start(message, COLL_PIN_A_RULE);
	nla_put_string(message, COLL_PIN_A_COMM, "kswapd*");
	nla_put_flag(message, COLL_PIN_A_KTHREAD);
	nla_nest_end(message, nest);
	nest = nla_nest_start(message, COLL_PIN_A_RULE);
	nla_put_string(message, COLL_PIN_A_COMM, "nobody");
	nla_put_u32(message, COLL_PIN_A_PARENT, 1);
	nla_nest_end(message, nest);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int pin_get(void)
{
	return ask(COLL_CMD_PIN_GET, NLM_F_DUMP);
}

static int pin_clear(void)
{
	return ask(COLL_CMD_PIN_CLEAR, 0);
}

/* What a socket of its own starts ends with it. */
static bool begin_family(int (*before)(void))
{
	return !netlink_open(&netlink) && (!before || !before());
}

static void end_family(void)
{
	netlink_close(netlink);
}

/* ---- the device --------------------------------------------------------------------- */

static struct offload ours, peers;
static int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];
static long ours_loaded, peers_loaded;
static float in[2][COUNT], out[2][COUNT];

static int device_open(void)
{
	return coll_offload_open(&ours, 0, 2, links[0]);
}

static int load(struct offload *o, long *number)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	struct usual_call usual;
	struct coll_schedule *s;

	usual_call(&usual, algo, 2, COUNT, COLL_FLOAT);
	usual.call.rank = o->rank;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	*number = offload_load(o, s, 1);
	free(s);
	return *number < 0 ? *number : 0;
}

static int device_load(void)
{
	return load(&ours, &ours_loaded);
}

static int device_run(void)
{
	int error = offload_run(&ours, ours_loaded, in[0], out[0], 0, 0);

	return error ? error : offload_wait(&ours, 0);
}

static int both_open(void)
{
	return device_open() || coll_offload_open(&peers, 1, 2, links[1]);
}

/* The peer has begun already. */
static int both_loaded(void)
{
	return both_open() || device_load() || load(&peers, &peers_loaded) ||
	       offload_run(&peers, peers_loaded, in[1], out[1], 0, 0);
}

static bool begin_device(int (*before)(void))
{
	memset(&ours, 0, sizeof(ours));
	memset(&peers, 0, sizeof(peers));
	offload_connect(links, 2);
	return !before || !before();
}

static void close_device(struct offload *o)
{
	if (o->shared && o->shared != MAP_FAILED)
		munmap(o->shared, 4096);
	if (o->fd > 0)
		close(o->fd);
}

static void end_device(void)
{
	close_device(&ours);
	close_device(&peers);
	close(links[0][1]);
	close(links[1][0]);
}

/* ---- all of them ----------------------------------------------------------------------- */

static const struct command {
	const char *name;
	bool device;
	int (*before)(void), (*give)(void);
} commands[] = {
	{ "noise start, in an interrupt", false, NULL, noise_in_an_interrupt },
	{ "noise start, in a thread", false, NULL, noise_in_a_thread },
	{ "noise get", false, noise_in_an_interrupt, noise_get },
	{ "noise log", false, noise_in_an_interrupt, noise_log },
	{ "noise stop", false, noise_in_a_thread, noise_stop },
	{ "watch start", false, NULL, watch_start },
	{ "watch get", false, watch_start, watch_get },
	{ "watch log", false, watch_start, watch_log },
	{ "pin set", false, NULL, pin_set },
	{ "pin set over others", false, pin_set, pin_set },
	{ "pin get", false, pin_set, pin_get },
	{ "pin clear", false, pin_set, pin_clear },
	{ "device: open, set up, a group, links", true, NULL, device_open },
	{ "device: load", true, device_open, device_load },
	{ "device: run", true, both_loaded, device_run },
};

/* 1: the allocation failed; 0: there is none any more, and all went well; or -errno. */
static int give(const struct command *command, int allocation)
{
	bool begun = command->device ? begin_device(command->before) :
				       begin_family(command->before);
	int error = -EAGAIN, failed = 0;

	if (begun) {
		fail_at(allocation);
		error = command->give();
		failed = has_failed();
	}
	if (command->device)
		end_device();
	else
		end_family();
	return failed ? 1 : error;
}

static void fail_each(const struct command *command)
{
	int allocation = 0, went;

	do {
		went = give(command, ++allocation);
	} while (went == 1 && allocation < ALLOCATIONS_MAX);
	vm_ok(!went && allocation > 1, "%s: with each of its %d allocations failing once%s%s",
	      command->name, allocation - 1, went ? ": " : "", went < 0 ? strerror(-went) : "");
}

int main(void)
{
	int left = 0;

	if (!can_fail()) {
		vm_skip("memory that is not there", "this kernel cannot let allocations fail");
		return vm_end();
	}
	signal(SIGPIPE, SIG_IGN);
	vm_loopback_up();
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fail_each(&commands[i]);
	netlink_open(&netlink);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP), count,
		    &left);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP), count,
		    &left);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_GET, NLM_F_DUMP), count, &left);
	vm_is(left, 0, "nothing is left of all that");
	netlink_close(netlink);
	return vm_end();
}
