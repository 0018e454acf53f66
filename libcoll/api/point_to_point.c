// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The public calls of point to point: requests as those of collectives. */
#include "request.h"

/* `any`: of a receive, which may leave it open. */
static void message_rank(struct coll_request *request, int rank, const char *any)
{
	if (any && rank == COLL_ANY_SOURCE) {
		request->call.root = COLL_NONE;
		return;
	}
	if (rank < 0 || (uint32_t)rank >= request->group->ranks)
		coll_request_refuse(request, "rank (%d) is no rank of the group; valid: 0 to %u%s",
				    rank, request->group->ranks - 1, any ? any : "");
	request->call.root = rank;
}

static void message_tag(struct coll_request *request, int tag, bool any)
{
	if (tag < 0 && !(any && tag == COLL_ANY_TAG))
		coll_request_refuse(request, "tag (%d) is negative; valid: 0 to 2147483647%s", tag,
				    any ? ", or COLL_ANY_TAG" : "");
	request->tag = tag;
}

static struct coll_request send_request(const void *data, size_t count, enum coll_type type,
					int rank, int tag, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_CALL_SEND, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, 1);
	message_rank(&request, rank, NULL);
	message_tag(&request, tag, false);
	request.in = (void *)data;
	return request;
}

int coll_send(const void *data, size_t count, enum coll_type type, int rank, int tag,
	      struct coll_group *group)
{
	return coll_request_block(send_request(data, count, type, rank, tag, group));
}

int coll_isend(const void *data, size_t count, enum coll_type type, int rank, int tag,
	       struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(send_request(data, count, type, rank, tag, group), run);
}

static struct coll_request recv_request(void *data, size_t count, enum coll_type type, int rank,
					int tag, struct coll_group *group,
					struct coll_received *received)
{
	struct coll_request request = coll_request_begin(COLL_CALL_RECV, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, 1);
	message_rank(&request, rank, ", or COLL_ANY_SOURCE");
	message_tag(&request, tag, true);
	request.out = data;
	request.received = received;
	return request;
}

int coll_recv(void *data, size_t count, enum coll_type type, int rank, int tag,
	      struct coll_group *group, struct coll_received *received)
{
	return coll_request_block(recv_request(data, count, type, rank, tag, group, received));
}

int coll_irecv(void *data, size_t count, enum coll_type type, int rank, int tag,
	       struct coll_group *group, struct coll_received *received, struct coll_run **run)
{
	return coll_request_start(recv_request(data, count, type, rank, tag, group, received), run);
}
