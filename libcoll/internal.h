/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The library's own objects and how they hang together:
 *
 *	context ── engine			one thread at a time uses it all
 *	   └─ group ── link (one a peer)	bytes between two ranks
 *	        ├─ planned			a call's schedule, made once, cached
 *	        └─ exec				one execution of a planned schedule
 *
 * Lifetime of an exec: started by coll_exec_start(); *over* when its schedule is
 * finished or its group has failed; *home* when besides no op of it is in the
 * engine's hands or in a link's queue. Only then its memory serves another run.
 */
#ifndef COLL_INTERNAL_H
#define COLL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "algo/algo.h"
#include "core/match.h"
#include "uapi/coll_wire.h"
#include "libcoll/boot/boot.h"
#include "libcoll/base/clock.h"
#include "coll.h"
#include "libcoll/base/options.h"
#include "libcoll/engine/engine.h"

struct coll_progress_ops;

/* ---- link --------------------------------------------------------------- */

enum {
	/* Payloads up to this are sent from the message itself: done at once. */
	MESSAGE_INLINE_MAX = 200,
	/* Larger expected payloads are received straight to their place. */
	DIRECT_MIN = 4096,
	/* Messages up to this overtake longer ones. */
	URGENT_MAX = 4096,
	/* A guess where payload goes is limited, so that a wrong one costs little. */
	GUESS_MAX = 65536,
};

/* One message under way from us; lives in its exec, or on the heap (control). */
struct coll_message {
	struct coll_message *next;
	struct coll_exec *exec;		/* NULL: control message, freed when sent */
	const uint8_t *payload;		/* NULL: in small[] */
	uint64_t age;			/* of bulk: the lower the older (arbiter.c) */
	uint32_t op;
	bool reported;			/* the op is done already */
	uint32_t streaming;		/* chunks of it that streams have */
	struct coll_header header;	/* of the chunk that is next, or under way */
	uint8_t small[MESSAGE_INLINE_MAX];
};

enum link_state {
	LINK_IDLE,		/* never used */
	LINK_CONNECTING,
	LINK_UP,
	LINK_LEFT,		/* the peer said goodbye */
	LINK_LOST,		/* it broke: the group will fail, for this or a better reason */
	LINK_CLOSED,		/* ended by us or lost */
};

struct coll_link {
	struct coll_socket socket;	/* what the engine knows of it */
	struct coll_group *group;
	uint32_t rank;			/* the peer's, in the group */
	enum link_state state;
	/*
	 * Between clusters a link may have streams: connections of their own, links to
	 * the engine, which carry its bulk and nothing else (stream.h).
	 */
	struct coll_link *whole;	/* of a stream: its link; else this one */
	struct coll_link *stream;	/* `streams` of them */
	uint32_t streams, number;	/* which of them it is, from 1; 0: no stream */
	struct coll_message *chunk;	/* of a stream: what it sends, a part of ... */
	struct coll_message *message;	/* ... this one; or NULL */
	char *where;			/* the peer's published line, kept for streams */
	bool farewell;			/* the peer said goodbye on this connection ... */
	uint32_t farewells;		/* ... and will on these streams (bits) */
	bool attached;			/* the engine knows it */
	bool local;			/* the peer is on this machine */
	bool lent;			/* to the kernel: the engine lets it be */
	bool circuit_up;		/* its circuit has been up once */
	bool heard;			/* something has come from the peer */
	bool leaving;			/* we said goodbye, or the socket is shut down */
	uint32_t attempts;		/* addresses tried so far */
	struct coll_watch connecting;

	/*
	 * Sending: a queue, of whose first message's chunk `sent` bytes are gone. In it
	 * the messages that are under way, the urgent, the bulk (arbiter.h).
	 */
	struct coll_message *queue, **queue_end, **urgent_end;
	uint64_t sent;
	uint64_t overtaken;		/* bytes of urgent messages since bulk has waited */
	bool promoted;			/* the first bulk counts as urgent, having waited */
	uint32_t in_iov;		/* how many messages of it */
	bool contends;			/* its bulk waits for the exit, or has it */
	bool stalled;			/* it had the exit and did not use it */
	bool finishing;			/* the last of its message goes while others have begun */
	struct coll_link *next_contender;
	int broken;			/* why no more can be sent; what came is read yet */
	bool cut;			/* injected: not all of these bytes are sent */

	/*
	 * Receiving: what comes next follows from what is missing. Header first;
	 * then payload_left bytes to `target` (NULL: thrown away); with them comes
	 * the next header, where another chunk is sure to follow.
	 */
	struct coll_header header, next_header;
	uint32_t header_got;
	uint64_t payload_left;
	uint8_t *target;
	struct coll_exec *exec;		/* whose payload it is, or NULL */
	uint32_t op;
	struct coll_early *early;	/* or the message is kept here */
	struct coll_early *kept, **kept_end;	/* those that came early, oldest first */
	uint32_t expected;		/* receives started and not arrived */
	uint8_t *guess;			/* where that one puts payload unseen, or NULL */
	struct coll_exec *guess_exec;	/* whose memory that is */

	uint64_t pinged;		/* since when a ping is unanswered, or 0 */
	uint32_t suspect;		/* whom the peer suspects, or COLL_NONE */
	struct inject_link *inject;	/* when something is injected */
};

/* ---- group -------------------------------------------------------------- */

/* A message that came before its receive. */
struct coll_early {
	struct coll_early *next;
	struct coll_header header;
	uint64_t room;
	uint64_t got;			/* bytes of it that are here */
	bool complete;
	uint8_t data[];
};

enum { PLANNED_MAX = 256, RECENT_RUNS = 64 };

enum group_state {
	GROUP_OK,
	GROUP_FAILING,		/* the bad news is on its way to the others */
	GROUP_FAILED,
};

struct coll_group {
	struct coll_context *context;
	struct coll_group *next;
	uint64_t id;
	uint32_t rank, ranks;
	uint32_t *cluster;		/* per rank; NULL: all are near each other */
	uint32_t clusters;
	uint32_t *world;		/* rank in the job, per rank */
	struct coll_link **links;	/* per rank, NULL until needed */
	uint32_t open_links;		/* whose sockets are not closed yet */
	bool watchful;			/* read links that nothing is expected from */
	bool freed;			/* by the caller; goes when its links have gone */
	uint32_t next_run;		/* number of the run to come */
	uint32_t recent[RECENT_RUNS];	/* hashes of the latest runs, by number */
	uint32_t splits;		/* so far: names the children */
	uint32_t agrees;		/* so far: names the agreements */
	struct coll_exec *active;	/* in order of start, until home */
	struct coll_exec **active_end;
	uint32_t lingering;		/* of these, over but not home */
	struct planned *planned[PLANNED_MAX];	/* cache, by hash of the call */
	struct circuit_fabric *fabric;	/* what circuits are planned for, or NULL: none are */
	uint32_t fabric_agreed;		/* their version that all ranks have */
	uint64_t fabric_asked;		/* rank 0: when the manager was asked */
	struct coll_early *early_free;	/* places to be used again */
	uint64_t early_bytes;		/* of these and of those in use */
	struct coll_options options;

	/* What of it is in /dev/coll (offload.c). */
	struct {
		uint32_t number;
		bool made, gone;	/* it is known there; it was */
		bool lent;		/* all links that are up, and those to come */
		bool partly;		/* not all could be; those that were are to come back */
		uint32_t flying;	/* runs there */
		struct coll_run *waiting, **waiting_end;	/* those that cannot start yet */
	} offload;

	enum group_state state;
	int error;			/* why it failed */
	uint32_t failed_rank, reporter;	/* ranks, or COLL_NONE */
	uint64_t failing_until;
	struct coll_link *lost;		/* the first that was; the group fails for it ... */
	uint64_t lost_until;		/* ... at this time */
	int lost_error;
	const char *lost_reason;
	uint8_t *failed;		/* per rank: known to have failed */
	char text[256];			/* why, or why the last call failed, in words */
	char shown[256];		/* a copy for the application's thread */
};

/* ---- progress that is chosen ---------------------------------------------- */

enum auto_choice { AUTO_CALL, AUTO_THREAD, AUTO_KERNEL };
enum { AUTO_CALLS = 256 };

/* What is known of a call, found by its key: who shares a place errs a little. */
struct auto_call {
	uint64_t key;			/* of the latest here */
	uint64_t alone;			/* ns that it would take by itself, as predicted, */
	uint64_t lasted;		/* and that runs have lasted, as far as can be told */
	uint64_t bytes;			/* of its larger buffer */
	bool seen;			/* runs of it: */
	uint64_t absence, outside;	/* ns that the application stayed away meanwhile: at
					   most at a time, in all */
	uint32_t away;			/* of the latest so many, for long */
};

/* What is seen of the application, which alone touches it. */
struct autopilot {
	uint64_t called;		/* when it left us last */
	uint64_t absence, outside;	/* the longest while something is in flight, and all */
	uint32_t flying;		/* nonblocking runs */
	uint32_t agreed;		/* runs of late that want its thread to be the owner */
	double idle;			/* cores, but for what its thread does there */
	uint64_t looked, idle_ns;	/* when, and what the counters said */
	struct auto_call of[AUTO_CALLS];
};

/* ---- planned schedules and their execution ------------------------------ */

struct planned {
	struct planned *next;
	uint32_t references;
	uint32_t hash;			/* travels in each header */
	struct coll_call call;		/* with its own copies of counts */
	u64 *counts;			/* the copies' memory */
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	uint32_t user_op;		/* for a user reduction: which */
	struct coll_schedule *schedule;
	struct coll_plan plan;
	struct coll_link **links;	/* per peer of the schedule */
	struct coll_exec *spare;	/* execs at home */
	uint32_t sends;
	uint32_t fabric;		/* version of the group's; 0: it was planned without */
	uint32_t *ports;		/* per rank, from these; or NULL */
	double delta, alpha, beta;	/* seconds, for the prediction; 0: not measured */
	struct coll_circuits_cost
		*cost;			/* predicted, if `ports` are planned for and it was asked */
	double bound;			/* seconds: no schedule takes less */
	double lit; /* seconds when its circuits are lit; 0: they do not fit at once */
	bool explained;
	struct coll_group *group;
	uint32_t loaded;		/* one more than its number in /dev/coll, or 0 */
	const char *aside;		/* why the latest run was not the kernel's, or NULL */
	enum auto_choice chosen;	/* for the latest run, if that is chosen */
};

struct coll_exec {
	struct coll_exec *next;		/* in group->active or planned->spare */
	struct coll_group *group;
	struct planned *planned;
	struct coll_run *run;		/* the handle that waits for it, or NULL */
	uint32_t number;
	uint32_t age;			/* of all the context's runs: the lower the older */
	bool over;
	int status;			/* once over */
	uint32_t in_flight;		/* ops that others hold: keeps it from home */
	uint64_t started, deadline, pinged, checked;
	bool held;			/* over, and somebody waits for it to come home */
	bool stepping;			/* ops are being started right now */
	struct coll_step step;
	uint8_t *buffer[COLL_BUFFERS];
	struct coll_message *messages;	/* one per send op */
	uint32_t *message_of;		/* per op */
	uint32_t *cursor;		/* per peer: lowest slot that has not arrived */
	uint32_t *posted;		/* per peer: receives started, not arrived */
	uint32_t *connects;		/* per peer, and way: connect ops so far */
	uint8_t *arrived;		/* per op: the message is here */
	uint64_t *got;			/* per op: so many bytes of it */
	uint64_t *posted_at;		/* per op: when; NULL unless something is injected */
};

/*
 * With a progress thread the owner has it while it is posted, and the
 * application before and after.
 */
struct coll_run {
	struct coll_run *next;		/* of those that the owner has started */
	struct coll_group *group;
	struct coll_call call;		/* until it is planned */
	u64 *counts;			/* copies of the call's, or NULL */
	uint32_t user_op;
	struct planned *planned;
	struct coll_exec *exec;		/* while it runs, unless the kernel has it: */
	uint32_t word;			/* one more than its completion word, or 0 */
	uint32_t number;
	uint64_t until, allowed;	/* its deadline, and how long that was from the start */
	bool waiting;			/* for its start */
	struct coll_run *next_offloaded;
	atomic_bool posted;		/* handed to a progress thread, not ended */
	void *in, *out;
	uint64_t deadline_ns;		/* 0: the group's */
	bool persistent;
	bool active;			/* started, and its end not told to the application */
	struct auto_call *evidence;	/* counted in the autopilot's, or NULL */
	uint64_t began;			/* with evidence: when */
	enum auto_choice chosen;
	char choice[96];		/* why */
	bool local;			/* on a caller's stack: a blocking call */
	int status;
	char *explanation;
};

/* ---- context ------------------------------------------------------------ */

/* What the links that arbiter.h speaks of share: one at a time sends bulk. */
struct arbiter {
	struct coll_link *contenders;
	struct coll_link *holder;	/* of these, the one whose chunk is under way, or NULL */
	uint64_t since;			/* that was handed to the engine */
	uint64_t usual;			/* ns that a chunk takes, of late */
	uint32_t runs;			/* so far: tells their age */
	uint32_t bulk;			/* messages so far */
};

struct user_op {
	coll_function *function;
	void *argument;
	bool commutative, used;
};

struct coll_context {
	struct coll_options options;
	struct coll_boot *boot;
	const struct coll_progress_ops *progress;
	void *progress_state;
	pthread_t owner;		/* the thread that may touch what hangs on it */
	struct coll_engine engine;
	struct offload *offload;	/* /dev/coll, or NULL */
	bool to_kernel;			/* unless the choice is another just now */
	struct autopilot autopilot;
	bool polled;			/* somebody may sleep on coll_fd() */
	struct coll_group *groups;	/* world is the last */
	struct coll_group *world;
	uint32_t *cluster;		/* per rank of the job, or NULL */
	struct arbiter arbiter;
	struct coll_watch listener;
	uint64_t listen_again;		/* out of descriptors: not accepting before; or 0 */
	int listen_error;		/* why the last connection was not accepted, or 0 */
	struct stranger *strangers;	/* accepted, not yet attached to a link */
	uint32_t strangers_count;
	char node[80];			/* names this machine and its network */
	bool losing;			/* a group has lost a link and has not failed yet */
	struct user_op *ops;
	uint32_t ops_count;
	struct coll_counters counters;
	struct inject *inject;
	struct circuit_client *circuits;	/* NULL: every peer is reachable at all times */
	uint8_t *sink;			/* GUESS_MAX bytes: where useless payload goes */
	uint8_t *shelf;			/* GUESS_MAX bytes: what a wrong guess got */
	int cores;			/* that this node's ranks share */
	struct coll_wan wan;		/* points 0: not measured */
	uint64_t window;		/* bytes on their way in one connection between clusters */
	uint32_t streams;		/* of a link between clusters; 1: its own connection */
	char congestion[16];		/* what the latest link's TCP uses */
	char usual_congestion[16];	/* the system's */
	char error[320];
};

#endif
