/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A collective call: its arguments are checked, then it is planned and started. */
#ifndef COLL_REQUEST_H
#define COLL_REQUEST_H

#include "run.h"

struct coll_request {
	struct coll_group *group;
	struct coll_call call;
	uint32_t user_op;
	int tag;			/* of a message, and ... */
	struct coll_received *received;	/* ... where its end is told, or NULL */
	void *in, *out;
	char *refusal;			/* why an argument is not valid, from malloc; or NULL */
	int error;
};

struct coll_request coll_request_begin(enum coll_collective collective, struct coll_group *group);

/*
 * Refuses the call with -EINVAL: the words follow "allreduce: ". The first refusal counts.
 */
void coll_request_refuse(struct coll_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The arguments. The type comes first: limits are in bytes. */
void coll_request_type(struct coll_request *request, enum coll_type type);
void coll_request_reduction(struct coll_request *request, enum coll_reduction op);
void coll_request_root(struct coll_request *request, int root);
/* Refuses the call if `blocks` of count elements do not fit into memory. */
void coll_request_count(struct coll_request *request, size_t count, uint64_t blocks);
/* `name`: of the argument. NULL after an error, and where none are given nor required. */
const u64 *coll_request_counts(struct coll_request *request, const size_t *counts, const char *name,
			       bool required);
/* The beginnings of the blocks of `counts`, which have been checked. */
const u64 *coll_request_displs(struct coll_request *request, const size_t *displs, const char *name,
			       const u64 *counts);
/* With COLL_IN_PLACE as `in`. */
void coll_request_buffers(struct coll_request *request, const void *in, void *out);
/* Of collectives where only the root may say COLL_IN_PLACE, for the argument `name`. */
void coll_request_in_place_on_root(struct coll_request *request, const char *name);

/* The arguments of a blocking call that has none per rank; 0 where it has none of a kind. */
struct coll_repeat {
	enum coll_collective collective;
	const void *in;			/* or COLL_IN_PLACE */
	void *out;
	size_t count;
	enum coll_type type;
	enum coll_reduction reduction;
	int root;
};

/*
 * Executes a call whose arguments, but for its buffers, are those of one of the group's latest:
 * they were checked then. False: it is to become a request, as any call.
 */
bool coll_request_repeat(struct coll_group *group, const struct coll_repeat *repeat, int *error);

/* The three forms. They take ownership of the request. */
int coll_request_block(struct coll_request request);
int coll_request_start(struct coll_request request, struct coll_run **run);
int coll_request_prepare(struct coll_request request, struct coll_run **run);

#endif
