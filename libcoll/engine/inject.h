/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Injected faults and noise: a specification, read once; plans of when it strikes, equal
 * for equal seeds; and short transfers. exec/inject_engine.h has the engine that injects.
 */
#ifndef COLL_INJECT_H
#define COLL_INJECT_H

#include "core/noise/text.h"
#include <sys/uio.h>

enum { INJECT_SPECS_MAX = 16 };

#define INJECT_EVERY_RANK UINT64_MAX

enum coll_inject_kind {
	INJECT_OS,	/* a rank stops */
	INJECT_LINK,	/* a message is late */
	INJECT_SHORT,	/* a read or write ends early */
	INJECT_DROP,	/* a connection breaks */
	INJECT_KILL,	/* a rank dies */
	INJECT_STOP,	/* a rank is stopped */
};

enum coll_inject_how { INJECT_SLEEP, INJECT_SPIN };
enum coll_inject_model { INJECT_EVENT, INJECT_OCCUPANCY };

struct coll_inject_spec {
	enum coll_inject_kind kind;
	enum coll_inject_how how;
	enum coll_inject_model model;
	struct coll_noise_said noise;	/* of INJECT_OS and INJECT_LINK */
	uint64_t rank;			/* in the job, or INJECT_EVERY_RANK */
	uint64_t from;			/* INJECT_LINK: of messages of this rank alone, likewise */
	double probability;
	uint64_t after;			/* messages or runs */
};

struct coll_inject_config {
	uint64_t seed;
	uint32_t count;
	struct coll_inject_spec spec[INJECT_SPECS_MAX];
};

/* Reads a specification, see coll-bench(1). -EINVAL: `why` says what is valid. */
int coll_inject_parse(struct coll_inject_config *config, const char *text, char *why, size_t bytes);
void coll_inject_release(struct coll_inject_config *config);

/* ---- plans: when noise strikes --------------------------------------------------- */

/* Time only moves forward in a plan. */
struct coll_inject_plan {
	struct coll_noise_plan noise;
	struct coll_noise_stream stream;
	struct coll_noise_span next;
	uint64_t busy_until;		/* latest end of the events passed */
};

/*
 * Starts at `now`, amid the events that have begun by then, on a clock that plans in phase share. `stream` separates
 * plans of the same seed.
 */
void coll_inject_plan_init(struct coll_inject_plan *plan, const struct coll_inject_spec *spec,
			   uint64_t stream, uint64_t now);
/* Returns the next event and moves past it. */
struct coll_noise_span coll_inject_plan_next(struct coll_inject_plan *plan);
/* The total duration of events that start in (from, to]. Moves to `to`. */
uint64_t coll_inject_plan_strikes(struct coll_inject_plan *plan, uint64_t from, uint64_t to);
/* The end of the event that `now` is in; 0: none. Moves to `now`. */
uint64_t coll_inject_plan_busy(struct coll_inject_plan *plan, uint64_t now);

/* Returns a random number and moves the state. */
uint64_t coll_inject_random(uint64_t *state);

/* ---- short reads and writes ----------------------------------------------------- */

struct coll_short_io {
	double probability;		/* of cutting a transfer */
	uint64_t random;
};

/*
 * Cuts the next transfer to its first bytes, at random. Returns the number of entries left;
 * *cut: whether it was cut. `io` NULL: never.
 */
int coll_short_io_clip(struct coll_short_io *io, struct iovec *iov, int count, bool *cut);

#endif
