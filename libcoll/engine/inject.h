/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Faults and noise on purpose: what is asked for (a specification, read once),
 * when it strikes (plans, the same for the same seed), and how transfers
 * are cut. The engine that carries it out (exec/inject_engine.h).
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
 * From `now` on, on the caller's clock, which is the same for all that shall be
 * in phase. `stream` tells plans of the same seed apart.
 */
void coll_inject_plan_init(struct coll_inject_plan *plan, const struct coll_inject_spec *spec,
			   uint64_t stream, uint64_t now);
/* The next event; moves past it. */
struct coll_noise_span coll_inject_plan_next(struct coll_inject_plan *plan);
/* How long the events last that start after `from` and not after `to`. Moves to `to`. */
uint64_t coll_inject_plan_strikes(struct coll_inject_plan *plan, uint64_t from, uint64_t to);
/* When the event that `now` lies in ends; 0: it lies in none. Moves to `now`. */
uint64_t coll_inject_plan_busy(struct coll_inject_plan *plan, uint64_t now);

/* A random number; moves the state. */
uint64_t coll_inject_random(uint64_t *state);

/* ---- short reads and writes ----------------------------------------------------- */

struct coll_short_io {
	double probability;		/* that a transfer is cut */
	uint64_t random;
};

/*
 * Cuts what is to be sent or received next to its first bytes, sometimes. Returns the
 * number of entries left; *cut: whether it did. `io` NULL: never.
 */
int coll_short_io_clip(struct coll_short_io *io, struct iovec *iov, int count, bool *cut);

#endif
