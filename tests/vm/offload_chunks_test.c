// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Messages that come in chunks, with others between: for receives that have
 * started, for those that have not, and chunks that do not fit. Rank 1 has no
 * device; it writes to its socket what it likes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uapi/coll_wire.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { BYTES = 30001, HASH = 7, RUNS = 3, DEADLINE_S = 20 };

static u8 byte_at(u32 run, u32 at)
{
	return at * 31 + (at >> 8) + run * 101;
}

/* Rank 0 receives it all from rank 1. */
static long load_bcast(struct offload *o)
{
	const struct coll_algo *algo = coll_algo_find(COLL_BCAST, "linear");
	struct usual_call usual;
	struct coll_schedule *s;
	long number;

	usual_call(&usual, algo, o->ranks, BYTES, COLL_UINT8);
	usual.call.rank = o->rank;
	usual.call.root = 1;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	number = offload_load(o, s, HASH);
	free(s);
	return number;
}

/* The run's bytes from `offset` on, so many units of them (0: the rest). */
static void write_chunk(int socket, u32 run, u32 offset, u32 units)
{
	const struct coll_header header = {
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.chunk = units,
		.run = run,
		.hash = HASH,
		.bytes = BYTES,
		.offset = offset,
	};
	u32 bytes = units ? units * COLL_CHUNK_UNIT : BYTES - offset, i;
	u8 data[BYTES];

	for (i = 0; i < bytes; i++)
		data[i] = byte_at(run, offset + i);
	if (send(socket, &header, sizeof(header), MSG_NOSIGNAL) != sizeof(header) ||
	    send(socket, data, bytes, MSG_NOSIGNAL) != bytes)
		perror("# send");
}

static void write_bye(int socket)
{
	const struct coll_header bye = { .kind = COLL_MESSAGE_BYE, .version = COLL_WIRE_VERSION };
	char rest[256];

	send(socket, &bye, sizeof(bye), MSG_NOSIGNAL);
	while (recv(socket, rest, sizeof(rest), 0) > 0)
		;
}

/* Three messages, in each other's gaps; the last two have begun before their runs. */
static int writer(int socket)
{
	usleep(200000);
	write_chunk(socket, 0, 0, 1);
	write_chunk(socket, 1, 0, 2);
	write_chunk(socket, 2, 0, 3);
	write_chunk(socket, 0, 4096, 5);
	write_chunk(socket, 1, 8192, 1);
	usleep(600000);
	write_chunk(socket, 0, 24576, 0);
	write_chunk(socket, 2, 12288, 0);
	write_chunk(socket, 1, 12288, 1);
	write_chunk(socket, 1, 16384, 0);
	write_bye(socket);
	return 0;
}

static int interleaved(u32 rank, u32 ranks, const int *links)
{
	static u8 out[RUNS][BYTES];
	struct offload o;
	long schedule, error = 0;
	u32 run, i;

	if (rank == 1)
		return writer(links[0]);
	if (coll_offload_open(&o, rank, ranks, links) || (schedule = load_bcast(&o)) < 0)
		return 1;
	error = offload_run(&o, schedule, NULL, out[0], 0, 0);
	usleep(500000);
	for (run = 1; run < RUNS && !error; run++)
		error = offload_run(&o, schedule, NULL, out[run], run, 0);
	for (run = 0; run < RUNS && !error; run++) {
		error = offload_poll(&o, run, DEADLINE_S);
		for (i = 0; i < BYTES && !error; i++)
			if (out[run][i] != byte_at(run, i)) {
				printf("# run %u, byte %u\n", run, i);
				error = -EILSEQ;
			}
	}
	if (error)
		printf("# %s\n", strerror(-error));
	coll_offload_close(&o);
	return error != 0;
}

/* A chunk is left out. */
static int gap(u32 rank, u32 ranks, const int *links)
{
	static u8 out[BYTES];
	struct offload o;
	long schedule, status;

	if (rank == 1) {
		usleep(200000);
		write_chunk(links[0], 0, 0, 1);
		write_chunk(links[0], 0, 8192, 0);
		write_bye(links[0]);
		return 0;
	}
	if (coll_offload_open(&o, rank, ranks, links) || (schedule = load_bcast(&o)) < 0 ||
	    offload_run(&o, schedule, NULL, out, 0, 0))
		return 1;
	status = offload_poll(&o, 0, DEADLINE_S);
	if (status != -EPROTO || o.shared->word[0].failed_rank != 1)
		printf("# status %ld, failed_rank %u\n", status, o.shared->word[0].failed_rank);
	return status != -EPROTO || o.shared->word[0].failed_rank != 1;
}

int main(void)
{
	vm_loopback_up();
	vm_ok(!offload_ranks(2, interleaved, 60), "chunks of three messages in each other's gaps");
	vm_ok(!offload_ranks(2, gap, 60), "a chunk that is left out fails the group");
	return vm_end();
}
