/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * From a schedule's text or JSON to the schedule: what both parsers share. Private
 * to core/text*.c.
 */
#ifndef COLL_TEXT_PARSED_H
#define COLL_TEXT_PARSED_H

#include "build.h"
#include "text.h"

struct coll_parsed {
	u64 rank, ranks, element;
	u64 buffer[COLL_BUFFERS];
};

struct coll_parsed_op {
	u32 kind;
	u64 peer, slot;		/* COLL_NONE: not given */
	u32 type, reduction;
	u64 bytes, result, left, right;
	u64 unless;		/* COLL_NONE: not given */
	u8 way;			/* circuits: COLL_CIRCUIT_OUT, _IN or 0 */
	bool any, optional;
};
#define COLL_PARSED_OP_INIT \
	((struct coll_parsed_op){ .peer = COLL_NONE, .slot = COLL_NONE, .unless = COLL_NONE })

/* Fills in error->reason; returns -EINVAL. */
__attribute__((format(printf, 2, 3)))
int coll_parse_error(struct coll_text_error *error, const char *format, ...);

/* Decimal digits and nothing else; not above `most`. */
bool coll_parse_number(const char *word, size_t length, u64 most, u64 *number);
/* "scratch+64" */
bool coll_parse_address(const char *word, size_t length, u64 *place);

/* The op to come waits for that one. */
int coll_parse_wait(struct coll_build *b, u64 op, bool any, struct coll_text_error *error);
/* Emits the op. Its waits have been parsed. */
int coll_parsed_emit(struct coll_build *b, const struct coll_parsed_op *op,
		     struct coll_text_error *error);

/* Emits all ops that `source` says; returns 0, the builder's error or -EINVAL. */
typedef int coll_parsed_ops(struct coll_build *b, const void *source,
			    struct coll_text_error *error);

/*
 * A checked schedule of the header and the ops. `hint`: bytes that it may need;
 * with too few, the ops are asked for again. *refused is the op that
 * coll_check() did not like, or COLL_NONE.
 */
int coll_parsed_schedule(const struct coll_parsed *parsed, coll_parsed_ops *ops, const void *source,
			 u64 hint, struct coll_schedule **schedule, u32 *refused,
			 struct coll_text_error *error);

#endif
