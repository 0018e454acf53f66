// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * circuit_calls CASE: a rank that calls collectives over the circuits of a fake switch, whose
 * SCPI port is in FAKE_SCPI. Rank 0 writes numbered marks into the switch's log.
 *
 *	again		mark 1, a call, mark 2, the same call, mark 3
 *	persistent	prepares a persistent call; mark 1 when the switch is idle; starts it
 *			three times; mark 2
 *	ports		a call and a persistent one, with all ports, with one port of node n1,
 *			and with three again; rank 0 prints what is planned
 *	bytes		a long bcast before and after the byte time has been measured
 *	late FILE	a call that the last rank enters when FILE exists
 *	one-way FILE	a bcast; rank 0 creates FILE when it has sent everything
 *	stuck PORT	mark 1, a call while the switch's port has failed, mark 2
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libcoll/coll.h"
#include "uapi/coll_circuit.h"
#include "tests/lib/rank.h"

enum { COUNT = 4096, LONG = 1 << 20, LOOKS = 600, LOOK_US = 50000, STILL = 4, BYTES_LOOKS = 8 };

static struct coll_group *world;
static double in[COUNT], out[COUNT];
static int calls;

/* ---- the fake switch and its manager -------------------------------------- */

/* Returns when the switch has done it. */
static void order_switch(const char *what, int number)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(atoi(getenv("FAKE_SCPI"))) };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[80];

	snprintf(text, sizeof(text), ":fake:%s %d\n:fake:most?\n", what, number);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    write(fd, text, strlen(text)) < 0 || read(fd, text, sizeof(text)) <= 0)
		rank_fail(world, "the fake switch does not answer");
	close(fd);
}

static void mark(int number)
{
	rank_check(world, coll_barrier(world), "coll_barrier");
	if (!coll_rank(world))
		order_switch("mark", number);
	rank_check(world, coll_barrier(world), "coll_barrier");
}

/* Asks the manager; returns the number of setups, if the answer has one. */
static unsigned long long ask_manager(struct coll_circuit_message m)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	unsigned long long setups = 0;

	strcpy(address.sun_path, getenv("COLL_CIRCUITS"));
	m.magic = COLL_CIRCUIT_MAGIC;
	m.version = COLL_CIRCUIT_VERSION;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    send(fd, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m))
		rank_fail(world, "the manager cannot be asked");
	do {
		if (recv(fd, &m, sizeof(m), MSG_WAITALL) != sizeof(m))
			rank_fail(world, "the manager does not answer");
		if (m.kind == COLL_CIRCUIT_MSG_SWITCH)
			setups = m.status.setups;
	} while (m.kind != COLL_CIRCUIT_MSG_ANSWER);
	close(fd);
	if (m.answer.error)
		rank_fail(world, "the manager: %s", m.answer.text);
	return setups;
}

/* Waits for the first setup, and then until STILL looks in a row see no new one. */
static void await_stillness(void)
{
	unsigned long long before = 0, now;
	int looks, still = 0;

	for (looks = 0; looks < LOOKS && still < STILL; looks++) {
		now = ask_manager((struct coll_circuit_message){ .kind = COLL_CIRCUIT_MSG_SHOW });
		still = now && now == before ? still + 1 : 0;
		before = now;
		usleep(LOOK_US);
	}
	if (still < STILL)
		rank_fail(world, "nothing is set up ahead");
}

/* ---- calls ------------------------------------------------------------------ */

static void fill(void)
{
	int i;

	calls++;
	for (i = 0; i < COUNT; i++)
		in[i] = (coll_rank(world) + 1) * (i % 7 + calls);
	memset(out, 0, sizeof(out));
}

static void check(void)
{
	const int ranks = coll_ranks(world);
	int i;

	for (i = 0; i < COUNT; i++)
		if (out[i] != ranks * (ranks + 1) / 2. * (i % 7 + calls))
			rank_fail(world, "call %d: element %d is %g", calls, i, out[i]);
}

static void tell(const char *when, struct coll_run *run)
{
	if (!coll_rank(world))
		printf("%s: %s\n", when, coll_run_explain(run));
}

static void call(const char *when)
{
	struct coll_run *run;

	fill();
	rank_check(world, coll_iallreduce(in, out, COUNT, COLL_DOUBLE, COLL_SUM, world, &run),
		   "coll_iallreduce");
	tell(when, run);
	rank_check(world, coll_run_wait(&run), "coll_run_wait");
	check();
}

static void start(const char *when, struct coll_run *run)
{
	fill();
	rank_check(world, coll_run_start(run), "coll_run_start");
	tell(when, run);
	rank_check(world, coll_run_wait(&run), "coll_run_wait");
	check();
}

static struct coll_run *prepare(void)
{
	struct coll_run *run;

	rank_check(world, coll_allreduce_init(in, out, COUNT, COLL_DOUBLE, COLL_SUM, world, &run),
		   "coll_allreduce_init");
	return run;
}

/* ---- scenes ------------------------------------------------------------------ */

static void play_again(void)
{
	mark(1);
	call("first");
	mark(2);
	call("second");
	mark(3);
}

static void play_persistent(void)
{
	struct coll_run *run = prepare();
	int i;

	rank_check(world, coll_barrier(world), "coll_barrier");
	if (!coll_rank(world))
		await_stillness();
	mark(1);
	for (i = 0; i < 3; i++)
		start("started", run);
	mark(2);
	rank_check(world, coll_run_free(&run), "coll_run_free");
}

static void give_ports(int ports)
{
	rank_check(world, coll_barrier(world), "coll_barrier");
	if (!coll_rank(world)) {
		ask_manager((struct coll_circuit_message){
			.kind = COLL_CIRCUIT_MSG_PORTS, .node = { .name = "n1", .ports = ports } });
		usleep(2 * LOOK_US);	/* the library does not ask more often */
	}
	rank_check(world, coll_barrier(world), "coll_barrier");
}

static void play_ports(void)
{
	struct coll_run *run = prepare();

	call("call before");
	start("start before", run);
	give_ports(1);
	call("call after");
	start("start after", run);
	give_ports(3);
	call("call again");
	start("start again", run);
	rank_check(world, coll_run_free(&run), "coll_run_free");
}

static void call_long(const char *when)
{
	static uint8_t data[LONG];
	struct coll_run *run;
	int i;

	for (i = 0; i < LONG; i++)
		data[i] = coll_rank(world) ? 0 : (calls + i) % 251;
	rank_check(world, coll_ibcast(data, LONG, COLL_UINT8, 0, world, &run), "coll_ibcast");
	tell(when, run);
	rank_check(world, coll_run_wait(&run), "coll_run_wait");
	for (i = 0; i < LONG; i++)
		if (data[i] != (calls + i) % 251)
			rank_fail(world, "%s: byte %d is %d", when, i, data[i]);
	calls++;
}

/* TCP's latest sample may be of a short message, which tells no rate: some more calls then. */
static void play_bytes(void)
{
	int looks;

	call_long("bytes before");
	for (looks = 0; looks < BYTES_LOOKS; looks++) {
		usleep(2 * LOOK_US);	/* the library does not look more often */
		rank_check(world, coll_barrier(world), "coll_barrier");
		call_long("bytes after");
	}
}

static void play_late(const char *file)
{
	int looks;

	if (coll_rank(world) == coll_ranks(world) - 1)
		for (looks = 0; looks < LOOKS && access(file, F_OK); looks++)
			usleep(LOOK_US);
	call("late");
}

static void play_one_way(const char *file)
{
	int i;

	rank_check(world, coll_barrier(world), "coll_barrier");	/* they are connected */
	for (i = 0; i < COUNT; i++)
		out[i] = coll_rank(world) ? 0 : i;
	rank_check(world, coll_bcast(out, COUNT, COLL_DOUBLE, 0, world), "coll_bcast");
	for (i = 0; i < COUNT; i++)
		if (out[i] != i)
			rank_fail(world, "element %d is %g", i, out[i]);
	if (!coll_rank(world))
		fclose(fopen(file, "w"));
}

static void play_stuck(int port)
{
	if (!coll_rank(world))
		order_switch("stuck", port);
	mark(1);
	call("stuck");
	mark(2);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);

	world = coll_world(context);
	if (argc == 2 && !strcmp(argv[1], "again"))
		play_again();
	else if (argc == 2 && !strcmp(argv[1], "persistent"))
		play_persistent();
	else if (argc == 2 && !strcmp(argv[1], "ports"))
		play_ports();
	else if (argc == 2 && !strcmp(argv[1], "bytes"))
		play_bytes();
	else if (argc == 3 && !strcmp(argv[1], "late"))
		play_late(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "one-way"))
		play_one_way(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "stuck"))
		play_stuck(atoi(argv[2]));
	else
		return 2;
	coll_close(context);
	return 0;
}
