// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The queues of the ring: entries that are submitted, completions that are handled. */
#include "core/port.h"
#include "uring.h"

void coll_uring_submit(struct coll_engine *engine)
{
	engine->counters->enters++;
	io_uring_submit(&coll_uring_of(engine)->ring);
}

bool coll_uring_has_capacity(struct coll_engine *engine, unsigned int entries)
{
	struct io_uring *ring = &coll_uring_of(engine)->ring;

	if (io_uring_sq_space_left(ring) < entries)
		coll_uring_submit(engine);
	return io_uring_sq_space_left(ring) >= entries;
}

struct io_uring_sqe *coll_uring_sqe(struct coll_engine *engine)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&coll_uring_of(engine)->ring);

	coll_assert(sqe);
	return sqe;
}

void coll_uring_sqe_owner(struct io_uring_sqe *sqe, const void *owner, enum coll_uring_tag tag)
{
	sqe->user_data = (uintptr_t)owner | tag;
}

void coll_uring_cancel(struct coll_engine *engine, const void *owner, enum coll_uring_tag tag)
{
	struct io_uring_sqe *sqe;

	if (!coll_uring_has_capacity(engine, 1))
		return;
	sqe = coll_uring_sqe(engine);
	io_uring_prep_cancel64(sqe, (uintptr_t)owner | tag, 0);
	coll_uring_sqe_owner(sqe, NULL, TAG_NONE);
}

int coll_uring_cancel_now(struct coll_uring *uring, const void *owner, enum coll_uring_tag tag)
{
	struct io_uring_sync_cancel_reg cancel = {
		.addr = (uintptr_t)owner | tag,
		.fd = -1,
		.timeout = { -1, -1 },
	};

	return io_uring_register_sync_cancel(&uring->ring, &cancel);
}

void coll_uring_reap(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct io_uring_cqe *cqe;

	/* One by one: a completion may lead to a submission, even to an enter. */
	while (!io_uring_peek_cqe(&uring->ring, &cqe)) {
		struct io_uring_cqe copy = { .user_data = cqe->user_data, .res = cqe->res,
					     .flags = cqe->flags };

		io_uring_cqe_seen(&uring->ring, cqe);
		uring->complete(engine, &copy);
	}
}
