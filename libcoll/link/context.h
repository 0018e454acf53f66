/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A context: this process in its job, and all that belongs to it.
 *
 *	context ── engine			one thread at a time uses it all
 *	   ├─ mux ── channel		a connection to a peer, shared by links
 *	   └─ group ── link (one a peer)	bytes between two ranks
 *	        ├─ planned			a call's schedule, made once, cached
 *	        └─ exec				one execution of a planned schedule
 */
#ifndef COLL_LINK_CONTEXT_H
#define COLL_LINK_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/core_wait.h"
#include "libcoll/base/costs.h"
#include "libcoll/base/options.h"
#include "libcoll/boot/boot.h"
#include "libcoll/coll.h"
#include "libcoll/engine/engine.h"
#include "libcoll/flight/flight.h"
#include "libcoll/flight/stolen.h"

/* Sockets that other ranks connect to: one for each address of the option `address`. */
enum { COLL_LISTENERS_MAX = 8 };

struct coll_arrival;
struct coll_autopilot;
struct coll_circuit_client;
struct coll_exec;
struct coll_group;
struct coll_link;
struct coll_link_events;
struct coll_mux;
struct coll_peer_process;
struct coll_progress_ops;
struct coll_transport;
struct coll_run;
struct coll_samples_found;
struct coll_inject;
struct coll_offload;
struct coll_pending_peer;
struct coll_user_op;

/* Shared by the links of arbiter.h: one at a time sends bulk. */
struct coll_arbiter {
	struct coll_link *contenders;
	struct coll_link *holder;	/* the link whose chunk is being sent, or NULL */
	uint64_t since;			/* when the engine got that chunk */
	uint64_t usual;			/* ns: usual time of a chunk */
	uint32_t runs;			/* so far: gives runs their age */
	uint32_t bulk;			/* messages so far */
};

/*
 * Events for the floors above the calls (job/, topology/, circuit/): a job opens, circuits
 * are needed. The floors below know only the names.
 */
struct coll_job_ops {
	/* The owner's part of coll_open() and coll_close(). */
	int (*begin)(struct coll_context *context);
	void (*end)(struct coll_context *context);

	/* A new group, on all of its ranks: agrees on its fabric. Again, later. */
	int (*agree)(struct coll_group *group);
	void (*agree_again)(void *group);

	/* All ranks' samples of a group's messages, before its run of this number: exec/survey.h.
	   Returns whether the costs or the noise have changed by which it chooses. */
	bool (*surveyed)(struct coll_group *group, const struct coll_samples_found *found);

	/* A planned run is about to begin. */
	void (*run_begins)(struct coll_run *run);

	/* Ops and runs that need circuits: libcoll/circuit/circuit.h. */
	bool (*circuit_free)(const struct coll_exec *exec, uint32_t peer);
	bool (*circuit_connect)(struct coll_exec *exec, uint32_t op);
	void (*circuit_release)(struct coll_exec *exec, uint32_t op);
	void (*circuits_prefetch)(struct coll_run *run);
	void (*circuits_started)(const struct coll_run *run);
	void (*circuits_completed)(struct coll_exec *exec);
	void (*circuits_forget)(const struct coll_run *run);
	void (*circuits_forget_group)(const struct coll_group *group);
};

struct coll_context {
	struct coll_options options;
	struct coll_boot *boot;
	const struct coll_progress_ops *progress;
	void *progress_state;
	pthread_t owner;		/* the thread that may touch what belongs to it */
	volatile bool *here;		/* false in a forked child (base/fork.h) */
	struct coll_engine engine;
	const struct coll_link_events *events;	/* of the floor above links */
	const struct coll_transport *transport;	/* of links that have not opened yet */
	/* The process of a rank of the job has ended: its links end after what it has sent. */
	void (*peer_ended)(struct coll_context *context, uint32_t world);
	const struct coll_job_ops *job;		/* of the floors above the calls */
	struct coll_offload *offload;	/* /dev/coll, or NULL */
	bool to_kernel;			/* runs may go to the kernel */
	struct coll_autopilot *autopilot;	/* NULL: progress is fixed */
	bool polled;			/* the application may sleep on coll_fd() */
	struct coll_alarm *alarm;	/* ... then it wakes for what no descriptor tells; or NULL */
	struct coll_group *groups;	/* world is the last */
	struct coll_group **group_slot;	/* of the same, by id (groups.h) */
	uint32_t group_slots, group_count;
	struct coll_group *world;
	struct coll_group *groups_freed; /* of these: they go when their links are closed */
	uint32_t *cluster;		/* per rank of the job, or NULL */
	uint32_t *node_of, *domain_of;	/* per rank of the job, or NULL: no levels */
	uint32_t *switch_of;		/* ... or NULL: one, or not known of all */
	enum coll_link_class nearest;	/* of links inside all of these */
	struct coll_arbiter arbiter;
	struct coll_watch listener[COLL_LISTENERS_MAX + 1];
	uint32_t listeners;
	bool listens_locally;		/* the last of them is a Unix socket: memory may be offered */
	const char *without_memory;	/* why it is not, or was not to some peer; NULL: it is */
	bool memory_is_limited;		/* by a cgroup: what is left is looked at before it is shared */
	uint64_t listen_again;		/* out of descriptors, or accepted some: not before; or 0 */
	int listen_error;		/* why the last connection was not accepted, or 0 */
	struct coll_pending_peer *pending_peers; /* accepted, not yet attached to a link */
	uint32_t pending_count, silent;	/* silent: those without a hello */
	/* Authenticated, for groups that do not exist here yet: from the latest to the oldest. */
	struct coll_arrival *arrivals, *arrivals_oldest;
	struct coll_arrival *arrivals_next;	/* the next one to be looked at, or NULL */
	uint32_t arrivals_count, arrivals_since;	/* since: added since all were looked at */
	uint64_t arrivals_bytes;	/* that they hold */
	struct coll_grave *graves;	/* failed groups that are gone (transport/arrival.h), or NULL */
	uint32_t buried;		/* ... so far */
	struct coll_mux *muxes;		/* shared connections, the latest first */
	uint32_t muxes_ended;
	uint64_t offload_again;		/* runs wait for links to come back: looks again then; or 0 */
	uint64_t unpublished;		/* a peer's address is not: looks again then; or 0 */
	uint32_t awaited;		/* links with work that their peers are to connect */
	bool attentive;			/* a group is watchful: all muxes are read */
	char **published;		/* per rank of the job: its address line, once known */
	uint8_t key[COLL_KEY_BYTES];	/* with which links prove themselves */
	struct coll_peer_process *peer_processes;	/* those on this node */
	uint8_t process[COLL_PROCESS_BYTES];	/* names this process, at random */
	char node[80];			/* names this machine and its network */
	struct coll_user_op *ops;
	uint32_t ops_count;
	uint32_t active;		/* runs of all groups that are not idle, but one in order */
	uint32_t board_readers;		/* of these: they read boards (exec/board.h) */
	uint64_t polled_at;		/* when a poll of it ended last */
	struct coll_counters counters;
	uint64_t grants_awaited;	/* how often a channel had to wait for its reader (transport/mux.h) */
	uint32_t channels_blocked;	/* that wait for it now */
	struct coll_flight flight;	/* what it does, for `coll show` */
	struct coll_inject *inject;
	struct coll_circuit_client *circuits;	/* NULL: all peers are reachable always */
	uint8_t *discard_buffer;	/* SPECULATIVE_MAX bytes: for discarded payload */
	uint8_t *bounce_buffer;		/* SPECULATIVE_MAX bytes: payload of a wrong speculation */
	uint8_t *mux_buffer;		/* MUX_BUFFER_BYTES: bytes received for another channel */
	int cores;			/* shared by the ranks of this node */
	int cores_told;			/* ... by the launcher; 0: it says nothing */
	struct coll_wan wan;		/* points 0: not measured */
	struct coll_costs costs;	/* of[].pairs 0: not measured */
	double bdp;			/* bytes in flight when a link is full; 0: not known */
	uint64_t window;		/* bytes in flight of one connection between clusters */
	uint32_t streams;		/* of a link between clusters; 1: its own connection */
	struct coll_core_wait core_wait;	/* of its owner; measure=auto or always */
	struct coll_stolen_known stolen;	/* by colld; likewise */
	char congestion[16];		/* what the latest link's TCP uses */
	char usual_congestion[16];	/* the system's */
	struct coll_run *handles;	/* those of the application, under this lock: */
	pthread_mutex_t handles_lock;	/* its threads may call at once (progress=thread) */
	char error[320];		/* why the latest call failed */
	char shown[320];		/* a copy for the application's thread */
};

/*
 * Whether the calling thread may touch what belongs to the context. Without a progress
 * thread the application keeps its own threads apart.
 */
static inline bool coll_context_is_owned(const struct coll_context *context)
{
	return !context->progress_state || pthread_equal(context->owner, pthread_self());
}

/* Calls of the application alone move it on: no thread does, nor the kernel, and no faults are injected. */
static inline bool coll_context_is_plain(const struct coll_context *context)
{
	return !context->progress_state && !context->offload && !context->inject;
}

/*
 * A thread of the application begins a call that may wait, and ends it; for the flight page.
 * Not in a forked child. Without a progress thread there is one such thread at a time. `waits`: for
 * what was begun before; else the time counts from the first run that the call begins. Returns
 * since when, for coll_context_leave(); 0: since then.
 */
static inline uint64_t coll_context_enter(struct coll_context *context, bool waits)
{
	uint32_t *inside = &context->flight.page->inside;

	if (context->progress_state) {
		__atomic_add_fetch(inside, 1, __ATOMIC_RELAXED);
		return coll_now();
	}
	++*inside;
	context->flight.entered = 0;
	return waits ? coll_now() : 0;
}

static inline void coll_context_leave(struct coll_context *context, uint64_t since)
{
	struct coll_flight_page *page = context->flight.page;
	const uint64_t now = __atomic_load_n(&page->now, __ATOMIC_RELAXED);

	__atomic_store_n(&page->left, now, __ATOMIC_RELAXED);
	if (context->progress_state) {
		if (since)
			__atomic_add_fetch(&page->spent, coll_now() - since, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&page->inside, 1, __ATOMIC_RELAXED);
		return;
	}
	if (!since)
		since = context->flight.entered;
	if (since && now > since)
		page->spent += now - since;
	--page->inside;
}

#endif
