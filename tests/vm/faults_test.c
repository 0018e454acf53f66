// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	faults_test [NAME]
 *
 * Memory that is not there: every command is given again and again, and each time
 * the next one of the kernel's allocations, or of its copies from and to user space,
 * fails, until none is left to fail (of hundreds of a kind, some). What comes of it is an
 * error or a success; nothing is left, and all works as before. Then the allocations of the thread of /dev/coll fail
 * at random while it runs. On kernels that can (the debug kernel):
 * /proc/thread-self/fail-nth. NAME: only commands in whose names it is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node/netlink.h"
#include "tests/lib/schedules.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "faults.h"
#include "offload.h"
#include "vm.h"

#define FAIL_NTH "/proc/thread-self/fail-nth"

enum { EACH = 100, ALLOCATIONS_MAX = 2000, COUNT = 1000 };

/* ---- faults --------------------------------------------------------------------- */

static int fail_nth = -1;	/* open all the time: to open it takes memory */

static bool can_fail(void)
{
	fail_nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	return fail_nth >= 0 && faults_possible();
}

static void fail_at(int allocation)
{
	char text[16];
	const int length = snprintf(text, sizeof(text), "%d", allocation);

	if (pwrite(fail_nth, text, length, 0) != length)
		abort();
}

/* Whether one did. If it is the copy of this number that fails, no other had to. */
static bool has_failed(void)
{
	char text[16] = "";
	const bool failed = pread(fail_nth, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

	/* This copy may be the one that fails; then it is the last. */
	if (pwrite(fail_nth, "0", 1, 0) != 1 && pwrite(fail_nth, "0", 1, 0) != 1)
		abort();
	return failed;
}

/* ---- the family ------------------------------------------------------------------- */

static struct netlink *netlink;

static int count(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command, (void)attributes;
	++*(int *)data;
	return 0;
}

static int ask(enum coll_command command, int flags)
{
	return netlink_ask(netlink, netlink_message(netlink, command, flags), ask_nothing, NULL);
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
	return netlink_ask(netlink, noise_message(COLL_NOISE_HARDIRQ), ask_nothing, NULL);
}

static int noise_in_a_thread(void)
{
	return netlink_ask(netlink, noise_message(COLL_NOISE_FIFO), ask_nothing, NULL);
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
	error = netlink_ask(netlink, message, ask_nothing, NULL);
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
	nla_put_u32(message, COLL_WATCH_A_LOG, 64);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int latency_start(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "0-1");
	nla_put_u64(message, COLL_WATCH_A_PERIOD, 1000000);
	nla_put_u64(message, COLL_WATCH_A_THRESHOLD, 100000000000);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int latency_get(void)
{
	return ask(COLL_CMD_WATCH_LATENCY, NLM_F_DUMP);
}

static int threshold_start(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "0-1");
	nla_put_u64(message, COLL_WATCH_A_THRESHOLD, 1000);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int passed_get(void)
{
	return ask(COLL_CMD_WATCH_PASSED, NLM_F_DUMP);
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

/* ---- circuits: a domain, a request, its release; nobody drives the switch ---- */

static uint32_t lease;

static int take_lease(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command, (void)data;
	lease = attributes[COLL_CIRCUIT_A_ID] ? nla_get_u32(attributes[COLL_CIRCUIT_A_ID]) : 0;
	return 0;
}

static struct nl_msg *circuit_message(enum coll_command command, const char *address)
{
	struct nl_msg *message = netlink_message(netlink, command, 0);
	struct in_addr binary;

	inet_pton(AF_INET, address, &binary);
	nla_put(message, COLL_CIRCUIT_A_ADDRESS, sizeof(binary), &binary);
	return message;
}

static int circuit_domain(void)
{
	struct nl_msg *message = circuit_message(COLL_CMD_CIRCUIT_DOMAIN, "10.77.0.1");

	nla_put_u8(message, COLL_CIRCUIT_A_PREFIX, 24);
	nla_put_u32(message, COLL_CIRCUIT_A_PORTS, 2);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int circuit_request(void)
{
	return netlink_ask(netlink, circuit_message(COLL_CMD_CIRCUIT_REQUEST, "10.77.0.2"),
			   take_lease, NULL);
}

static int circuit_requested(void)
{
	return circuit_domain() || circuit_request();
}

static int circuit_get(void)
{
	return ask(COLL_CMD_CIRCUIT_GET, NLM_F_DUMP);
}

static int circuit_release(void)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_CIRCUIT_RELEASE, 0);

	nla_put_u32(message, COLL_CIRCUIT_A_ID, lease);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int circuit_clear(void)
{
	return ask(COLL_CMD_CIRCUIT_CLEAR, 0);
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

static int device_buffer(void)
{
	struct coll_device_buffer buffer = {
		.address = (uintptr_t)out, .bytes = sizeof(out), .writable = 1,
	};
	struct coll_device_number number = { 0 };
	const long result = offload_do(ours.fd, COLL_DEVICE_BUFFER, &buffer, sizeof(buffer));

	number.number = result;
	return result < 0 ? result : offload_do(ours.fd, COLL_DEVICE_BUFFER_FREE, &number,
						sizeof(number));
}

static int device_messages(void)
{
	struct coll_device_control ping = {
		.group = ours.group, .rank = 1,
		.header = { .kind = COLL_MESSAGE_PING, .version = COLL_WIRE_VERSION },
	}, got = { .group = ours.group };
	struct coll_device_counters counters;
	long result = offload_do(ours.fd, COLL_DEVICE_CONTROL_SEND, &ping, sizeof(ping));

	if (!result)
		result = offload_do(ours.fd, COLL_DEVICE_CONTROL_GET, &got, sizeof(got));
	if (result == -EAGAIN)
		result = 0;
	return result ?: offload_do(ours.fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
}

static int device_detach(void)
{
	struct coll_device_link link = { .group = ours.group, .rank = 1, .fd = -1 };

	return offload_do(ours.fd, COLL_DEVICE_DETACH, &link, sizeof(link));
}

static int device_end(void)
{
	struct coll_device_fail fail = { .group = ours.group, .error = EIO, .failed_rank = 0,
					 .reporter = COLL_NONE };
	struct coll_device_number group = { .number = ours.group }, loaded = { 0 };

	loaded.number = ours_loaded;
	return offload_do(ours.fd, COLL_DEVICE_UNLOAD, &loaded, sizeof(loaded)) ?:
	       offload_do(ours.fd, COLL_DEVICE_FAIL, &fail, sizeof(fail)) ?:
	       offload_do(ours.fd, COLL_DEVICE_GROUP_FREE, &group, sizeof(group));
}

static int loaded_here(void)
{
	return device_open() || device_load();
}

/* A run as a request of a ring, which completes with the run. */
static int ring_run(void)
{
	struct coll_device_run run = {
		.schedule = ours_loaded,
		.in = { .address = (uintptr_t)in[0], .buffer = COLL_NONE },
		.out = { .address = (uintptr_t)out[0], .buffer = COLL_NONE },
	};
	struct coll_device_command command = {
		.argument = (uintptr_t)&run, .bytes = sizeof(run),
	};
	struct __kernel_timespec limit = { .tv_sec = 60 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int error = io_uring_queue_init(4, &ring, 0);

	if (error)
		return error;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, ours.fd, NULL, 0, 0);
	sqe->cmd_op = COLL_DEVICE_RUN;
	memcpy(sqe->cmd, &command, sizeof(command));
	error = io_uring_submit(&ring);
	if (error == 1)
		error = io_uring_wait_cqe_timeout(&ring, &cqe, &limit) ?: cqe->res;
	io_uring_queue_exit(&ring);
	return error;
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
	{ "latency start", false, NULL, latency_start },
	{ "latency get", false, latency_start, latency_get },
	{ "passed get", false, threshold_start, passed_get },
	{ "pin set", false, NULL, pin_set },
	{ "pin set over others", false, pin_set, pin_set },
	{ "pin get", false, pin_set, pin_get },
	{ "pin clear", false, pin_set, pin_clear },
	{ "circuit: domain", false, NULL, circuit_domain },
	{ "circuit: request", false, circuit_domain, circuit_request },
	{ "circuit: get", false, circuit_requested, circuit_get },
	{ "circuit: release", false, circuit_requested, circuit_release },
	{ "circuit: clear", false, circuit_requested, circuit_clear },
	{ "device: open, set up, a group, links", true, NULL, device_open },
	{ "device: load", true, device_open, device_load },
	{ "device: run", true, both_loaded, device_run },
	{ "device: run as a request of a ring", true, both_loaded, ring_run },
	{ "device: a buffer", true, device_open, device_buffer },
	{ "device: messages and counters", true, device_open, device_messages },
	{ "device: detach", true, device_open, device_detach },
	{ "device: unload, fail, free", true, loaded_here, device_end },
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

/* Hundreds of a kind fill a pool: behind the first hundred the steps are a tenth of the number. */
static int next_allocation(int allocation)
{
	return allocation + (allocation < EACH ? 1 : allocation / 10);
}

static void fail_each(const struct command *command)
{
	const uint64_t begin = vm_now();
	int allocation = 0, tries = 0, went;

	vm_note("%s", command->name);	/* where it stands, if it does */
	do {
		allocation = next_allocation(allocation);
		went = give(command, allocation);
		tries++;
	} while (went == 1 && allocation < ALLOCATIONS_MAX);
	vm_ok(!went && tries > 1, "%s: with %d of up to %d allocations and copies failing once%s%s",
	      command->name, tries - 1, allocation - 1, went ? ": " : "",
	      went < 0 ? strerror(-went) : "");
	vm_note("%.0f ms each", (vm_now() - begin) / 1e6 / tries);
}

/* ---- the device's thread --------------------------------------------------------------- */

enum { THREAD_RUNS = 300, PER_MILLE = 40 };

/* 1: the sum is there; 0: an error, of both sides or of one; -1: a wrong sum, or no end. */
static int thread_run(void)
{
	int error, status;

	memset(out, 0, sizeof(out));
	error = offload_run(&peers, peers_loaded, in[1], out[1], 0, 0);
	error = error ?: offload_run(&ours, ours_loaded, in[0], out[0], 0, 0);
	if (error)
		return 0;
	status = offload_poll(&ours, 0, 100);
	if (!status)
		status = offload_poll(&peers, 0, 100);
	if (status)
		return status == -ETIME ? -1 : 0;
	for (int i = 0; i < COUNT; i++)
		if (out[0][i] != i + 1 || out[1][i] != i + 1)
			return -1;
	return 1;
}

static void fail_threads(void)
{
	int good = 0, bad = 0, wrong = 0, marked = 0, result;

	for (int i = 0; i < COUNT; i++) {
		in[0][i] = i;
		in[1][i] = 1;
	}
	for (int i = 0; i < THREAD_RUNS && !wrong;) {
		faults_of_marked(0, false);
		if (!begin_device(NULL) || both_open() || device_load() ||
		    load(&peers, &peers_loaded)) {
			wrong++;
			break;
		}
		marked = faults_mark("coll/");
		faults_of_marked(PER_MILLE, false);
		do {
			result = thread_run();
			good += result == 1;
			bad += !result;
			wrong += result < 0;
		} while (++i < THREAD_RUNS && result == 1);
		faults_of_marked(0, false);
		end_device();
	}
	vm_is(marked, 2, "two threads whose memory may fail");
	vm_note("%d runs were right, %d failed", good, bad);
	vm_ok(good && !wrong, "their runs are right, or fail and say so");
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : "";
	int left = 0;

	if (!can_fail()) {
		vm_skip("memory that is not there", "this kernel cannot let allocations fail");
		return vm_end();
	}
	signal(SIGPIPE, SIG_IGN);
	vm_loopback_up();
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strstr(commands[i].name, only))
			fail_each(&commands[i]);
	if (!*only)
		fail_threads();
	netlink_open(&netlink);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP), count,
		    &left);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP), count,
		    &left);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_GET, NLM_F_DUMP), count, &left);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_CIRCUIT_GET, NLM_F_DUMP), count,
		    &left);
	vm_is(left, 0, "nothing is left of all that");
	netlink_close(netlink);
	return vm_end();
}
