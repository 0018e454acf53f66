// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Noise on the application's CPU, from the injector's hard interrupts, half of the time:
 * an offloaded run ends in the midst of it. The application is on CPU 1 and starts runs
 * of two ranks; their threads are on CPU 0, as is somebody who notes when words are set.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum {
	CPU = 1,
	RUNS = 16,			/* in flight at once */
	COUNT = 16384,			/* floats each */
	BATCHES = 40,			/* of RUNS; more until enough ends are seen */
	ENOUGH = 10,
	LOG = 8192,
	SECONDS = 40,
};
static const uint64_t ms = 1000000, second = 1000000000;

static struct offload side[2];
static long loaded[2];
static float in[2][COUNT], out[2][RUNS][COUNT];
static struct netlink *netlink;

/* ---- who watches -------------------------------------------------------------------- */

static uint64_t end[RUNS];		/* CLOCK_REALTIME; 0: not yet */
static uint32_t watched, ended;		/* batches */

/* The clock of the injector's log. */
static uint64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * second + now.tv_nsec;
}

static bool is_set(int rank, int word)
{
	return __atomic_load_n(&side[rank].shared->word[word].state, __ATOMIC_ACQUIRE) ==
	       COLL_DEVICE_DONE;
}

static void *watch(void *unused)
{
	int i, left;

	vm_run_on(0);
	for (;; usleep(50)) {
		if (__atomic_load_n(&watched, __ATOMIC_ACQUIRE) == ended)
			continue;
		for (i = left = 0; i < RUNS; i++) {
			if (!end[i] && is_set(0, i) && is_set(1, i))
				end[i] = wall_clock();
			left += !end[i];
		}
		if (!left)
			__atomic_store_n(&ended, watched, __ATOMIC_RELEASE);
	}
	return unused;
}

/* ---- runs ----------------------------------------------------------------------------- */

static bool open_sides(void)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], rank;
	struct usual_call usual;

	offload_connect(links, 2);
	for (rank = 0; rank < 2; rank++) {
		struct coll_schedule *s;

		if (offload_open_on(&side[rank], rank, 2, links[rank], 0))
			return false;
		usual_call(&usual, algo, 2, COUNT, COLL_FLOAT);
		usual.call.rank = rank;
		s = emit_schedule(algo, &usual.call, &usual.tuning);
		loaded[rank] = offload_load(&side[rank], s, 1);
		free(s);
		if (loaded[rank] < 0)
			return false;
	}
	return true;
}

/* RUNS of them; meanwhile the application computes. Whether they end well. */
static bool batch(void)
{
	int i, rank, bad = 0;

	memset(end, 0, sizeof(end));
	for (i = 0; i < RUNS; i++)
		for (rank = 0; rank < 2; rank++)
			bad |= offload_run(&side[rank], loaded[rank], in[rank], out[rank][i], i, 0) != 0;
	if (bad)
		return false;
	__atomic_store_n(&watched, watched + 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) != watched)
		;
	for (i = 0; i < RUNS; i++)
		bad |= side[0].shared->word[i].status | side[1].shared->word[i].status;
	return !bad;
}

/* ---- noise ------------------------------------------------------------------------------ */

static int take_id(enum coll_command command, struct nlattr **attributes, void *data)
{
	if (command != COLL_CMD_NOISE_START || !attributes[COLL_NOISE_A_ID])
		return -EINVAL;
	*(uint32_t *)data = nla_get_u32(attributes[COLL_NOISE_A_ID]);
	return 0;
}

static int start_noise(uint32_t *id)
{
	const struct coll_noise_model model = { .period = 10 * ms, .duration = 5 * ms };
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_HARDIRQ);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	nla_put_u32(message, COLL_NOISE_A_SHARE, 7000);
	nla_put_u32(message, COLL_NOISE_A_LOG, LOG);
	nla_put_u64(message, COLL_NOISE_A_LIFETIME, SECONDS * second);
	return netlink_ask(netlink, message, take_id, id);
}

static struct {
	struct coll_noise_injected event[LOG];
	uint32_t count;
} noise;

static int take_events(enum coll_command command, struct nlattr **a, void *data)
{
	struct nlattr *part = a[COLL_NOISE_A_EVENTS];
	uint32_t count = part ? nla_len(part) / sizeof(*noise.event) : 0;

	(void)data;
	if (command != COLL_CMD_NOISE_LOG || noise.count + count > LOG)
		return -EINVAL;
	if (count)
		memcpy(noise.event + noise.count, nla_data(part), nla_len(part));
	noise.count += count;
	return 0;
}

static bool within_noise(uint64_t when)
{
	uint32_t i;

	for (i = 0; i < noise.count; i++) {
		uint64_t begin = noise.event[i].asked_start + noise.event[i].late;

		if (when > begin && when < begin + noise.event[i].duration)
			return true;
	}
	return false;
}

/* Of these ends. The log is read while the noise goes on. */
static int count_within(uint32_t id, const uint64_t *when, int count)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_LOG, NLM_F_DUMP);
	int i, within = 0;

	noise.count = 0;
	nla_put_u32(message, COLL_NOISE_A_ID, id);
	if (netlink_ask(netlink, message, take_events, NULL))
		return -1;
	for (i = 0; i < count; i++)
		within += within_noise(when[i]);
	return within;
}

/* ---- the test ------------------------------------------------------------------------------ */

/* Per cent of the time, as far as the log goes. */
static double share_of_noise(void)
{
	const struct coll_noise_injected *last = &noise.event[noise.count - 1];
	double taken = 0;
	uint32_t i;

	for (i = 0; i < noise.count; i++)
		taken += noise.event[i].duration;
	return 100 * taken / (last->asked_start + last->duration - noise.event[0].asked_start);
}

static void beside_noise(void)
{
	const uint64_t until = vm_now() + SECONDS / 2 * second;
	static uint64_t when[BATCHES * RUNS];
	int within = 0, i;
	bool good = true;
	uint32_t id;

	if (!vm_is(start_noise(&id), 0, "noise on CPU 1"))
		return;
	while (within >= 0 && within < ENOUGH && good && vm_now() < until) {
		for (i = 0; i < BATCHES && good; i++) {
			good = batch();
			memcpy(when + i * RUNS, end, sizeof(end));
		}
		within = count_within(id, when, BATCHES * RUNS);
	}
	vm_ok(good, "runs end well");
	vm_ok(within >= ENOUGH, "%d of %d end while their application's CPU is taken", within,
	      BATCHES * RUNS);
	if (noise.count)
		vm_note("which it was for %.0f %% of the time", share_of_noise());
}

int main(void)
{
	pthread_t watcher;

	vm_loopback_up();
	vm_run_on(CPU);
	if (!vm_is(netlink_open(&netlink), 0, "the family") || !vm_ok(open_sides(), "two ranks"))
		return vm_end();
	pthread_create(&watcher, NULL, watch, NULL);
	beside_noise();
	netlink_close(netlink);
	return vm_end();
}
