/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Options. One table in api/options.c has their names, defaults and valid values; coll(7)
 * describes them. Precedence: coll_open()'s string or coll_group_set(), environment
 * COLL_<NAME>, file $COLL_CONFIG, default.
 */
#ifndef COLL_OPTIONS_H
#define COLL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "algo/common/algo.h"

enum { WAN_STREAMS_MAX = 16 };

struct coll_options {
	char engine[16];	/* auto, uring, epoll */
	char progress[16];	/* call, thread, helper */
	char threads[8];	/* that may call: one, any */
	char progress_cpus[128];	/* of the progress thread; "": the caller's */
	char progress_priority[16];	/* its priority; "": the caller's */
	uint64_t deadline_ns;
	uint64_t spin_ns;	/* time to poll before sleeping */
	char wait[8];		/* beside a neighbour: auto, yield, sleep */
	char memory[8];		/* between ranks of a node: auto, copy, off */
	char protect[8];	/* of connections between ranks: none, proof, seal */
	char address[256];	/* comma-separated; "": all of this host's */
	char congestion[16];	/* "": the system's */
	uint64_t unexpected_bytes;	/* of unexpected messages that a group keeps */
	uint64_t buffer_bytes;	/* SO_SNDBUF, SO_RCVBUF; 0: the kernel decides */
	char link_policy[16];	/* rr, occupancy, occupancy-hier */
	uint64_t link_chunk;	/* chunk size in bytes; 0: see arbiter.h */
	char wan_congestion[16];	/* "": as the others' */
	uint64_t wan_pacing;	/* bytes a second of a link between clusters; 0: no limit */
	char wan[8];		/* off, auto: measured at start */
	uint64_t wan_streams;	/* connections of such a link for bulk; 0: see wan.h */
	uint64_t wan_buffer_bytes;	/* its SO_SNDBUF, SO_RCVBUF; 0: the kernel decides */
	char levels[256];	/* which ranks share a node, and an L3; "": auto */
	char clusters[256];	/* which ranks are near each other; "": all are */
	char cluster[64];	/* the name of this rank's cluster, or "" */
	char leaf[64];		/* the name of the switch that this rank's node is at, or "": Slurm's */
	char circuits[108];	/* the manager's socket; "on", "off" */
	char node[64];		/* this node's name there; "": the host's */
	char circuit_ports[16];	/* auto, off: for calls that name no ports */
	uint64_t explain;	/* 1: say on stderr what was chosen and why */
	char inject[512];
	uint64_t flight;	/* 1: `coll show` sees what this rank does */
	char dump[256];		/* a folder: a failed group's flight record goes there; "": no */
	char report[256];	/* a file: what collectives cost, when the job ends; "": no */
	uint64_t dump_signal;	/* ... at this signal too; 0: at none */
	uint64_t log;		/* enum coll_log_level */
	char measure[8];	/* auto, off, start, always: costs of messages, and noise */
	uint64_t measure_ns;	/* ... in about this time */
	char costs[256];	/* a file with costs of the machine, on rank 0; "": none */
	struct coll_machine machine;
	const struct coll_algo *algo[COLL_COLLECTIVES];	/* NULL: automatic */
	struct coll_tuning tuning[COLL_COLLECTIVES];
};

/* Whether costs are measured when the job begins. */
static inline bool coll_options_measure_first(const struct coll_options *options)
{
	return !strcmp(options->measure, "start") || !strcmp(options->measure, "always");
}

/* Whether they follow its messages, and noise is looked for. */
static inline bool coll_options_follow(const struct coll_options *options)
{
	return !strcmp(options->measure, "auto") || !strcmp(options->measure, "always");
}

enum { OPTIONS_WHY = 512 };	/* bytes of `why` that hold a list of algorithms, and where it was */

/* Sets defaults, then the file's and the environment's values. On error `why` has words. */
int coll_options_init(struct coll_options *options, char *why, size_t why_bytes);

/* Sets one option. -EINVAL: no such option or value; `why` says what is valid. */
int coll_options_set(struct coll_options *options, const char *key, const char *value,
		     char *why, size_t why_bytes);

/*
 * Whether no option asks for what an MPI has not: an algorithm for this collective ("bcast"), noise,
 * costs that follow messages, a report, levels or clusters, circuits, seals, the way of bytes in a node.
 */
bool coll_options_ask_nothing(const struct coll_options *options, const char *collective);

/* An option that holds for the whole context: a group has no value of its own. */
bool coll_options_is_of_context(const char *key);

/* "key=value key=value ..." */
int coll_options_parse(struct coll_options *options, const char *text, char *why,
		       size_t why_bytes);

/* Costs of the machine that no option sets become the found ones. */
void coll_options_take(struct coll_options *options, const struct coll_machine *found);

/* Reads the costs in the file of option `costs`; none is no error. On error `why` has words. */
int coll_options_read_costs(const struct coll_options *options, struct coll_machine *found,
			    char *why, size_t why_bytes);

/* A time: a number and ns, us, ms, s, m, h, d or nothing (seconds). */
int coll_options_time(const char *value, double *seconds);

#endif
