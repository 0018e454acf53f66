/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Models of noise as people write them. User space only.
 *
 *	periodic:period=10ms,duration=250us,phase=random,seed=7
 *	periodic:rate=100,duration=250us,phase=staggered,streams=8
 *	poisson:rate=100,duration=50us,length=pareto,shape=1.5,longest=10ms
 *	poisson:period=10ms,table=FILE
 *	replay:FILE,phase=same
 *
 * Phase is random and length fixed unless said. A file has lines of a start and
 * a duration in ns (Netgauge, LogGOPSim; `#` comments), or is a trace of the
 * kernel's osnoise tracer, or a capture (uapi/coll_noise.h); of the latter two
 * `cpu=N` takes another CPU than the first. A replay begins again after the last
 * event's end, or after the time that the capture watched, unless `period` says
 * otherwise.
 */
#ifndef COLL_TEXT_NOISE_H
#define COLL_TEXT_NOISE_H

#include "noise.h"
#include "core/text.h"

/* What the text specified; the table is allocated. */
struct coll_noise_said {
	struct coll_noise_model model;
	struct coll_noise_span *table;
	u32 spans;
};

/*
 * A model that has passed coll_noise_check(). `seed` holds where the text says
 * none. -EINVAL: the reason says which word is wrong and what is valid; -ENOMEM.
 */
int coll_noise_parse(const char *text, u64 seed, struct coll_noise_said *said,
		     struct coll_text_error *error);
void coll_noise_said_free(struct coll_noise_said *said);

static inline struct coll_noise_plan coll_noise_said_plan(const struct coll_noise_said *said)
{
	return (struct coll_noise_plan){ &said->model, said->table, said->spans };
}

/* The words before the `=`, up to NULL. */
extern const char *const coll_noise_keys[];

/* As above, in one line without its end; of a table the number of its entries. */
void coll_noise_print(const struct coll_noise_plan *plan, FILE *to);

/*
 * The events of a file, in order of start, of one CPU where it knows of CPUs
 * (COLL_NONE: the first it names). *length is when a replay begins again.
 * error->line is the file's.
 */
int coll_noise_read_spans(const char *path, u32 cpu, struct coll_noise_span **table, u32 *spans,
			  u64 *length, struct coll_text_error *error);

/*
 * One line of the kernel's osnoise tracer: an event of its *_noise tracepoints, or a whole
 * gap (sample_threshold, cause hardware) with the number of those within it.
 */
struct coll_noise_traced {
	u8 cause;
	u32 cpu;
	u32 number;		/* irq, softirq vector or pid */
	u32 interference;
	u64 start;		/* since boot */
	u64 duration;
	char name[40];		/* "": none */
};

/* 1: an event; 0: another line; -EINVAL: an event that cannot be read. */
int coll_noise_traced(const char *line, struct coll_noise_traced *traced);
/* Two numbers in a line, fractions rounded: "100 25", "100.00\t25.00 # as selfish has it". */
bool coll_noise_pair(const char *line, u64 *first, u64 *second);
/* Nothing in it, or a comment. */
bool coll_noise_line_is_empty(const char *line);
/* "12.5" times `unit`, exact in its whole part and below 2^62; what follows, or NULL. */
const char *coll_text_scaled(const char *text, u64 unit, u64 *value);

/* "250us", "2.5ms", "1h"; without a unit it is `unit` ns. Not negative, below 2^62. */
bool coll_text_time(const char *text, u64 unit, u64 *ns);
/* The same in seconds, with what is less than a nanosecond; without a unit it is seconds. */
bool coll_text_seconds(const char *text, double *seconds);

#endif
