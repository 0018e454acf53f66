// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* How a link ends: lost, left or closed. */
#include <errno.h>
#include <string.h>

#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "link.h"
#include "stream.h"

bool coll_is_our_lack(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS ||
	       error == -ENOSPC || error == -ENOLINK;
}

/* ---- losing ------------------------------------------------------------- */

static const char *loss_reason(const struct coll_link *link, int error)
{
	const bool connecting = link->state == LINK_CONNECTING;

	switch (error) {
	case 0:
	case -ECONNRESET:
	case -EPIPE:
		if (link->state == LINK_IDLE)
			return "it has died, or left, and never connected";
		return "its connection ended: it has died or was cut off";
	case -ETIMEDOUT:	/* of the store, or TCP_USER_TIMEOUT */
		return connecting ? "it has not joined the job" : "it receives nothing any more";
	case -EHOSTUNREACH:
		return connecting ? "it accepts no connection at any of its addresses" :
				    "its host is unreachable";
	case -EBADMSG:
		return "what came on its connection is not what it has sealed";
	default:
		return strerror(-error);
	}
}

static const char *lack_reason(const struct coll_link *link, int error)
{
	if (error == -ENOLINK)
		return "it cannot look up another rank in the job's store";
	return link->state == LINK_UP ? "it cannot keep its connection" : "it cannot make a connection";
}

/* The link is not closed before the group fails: queued messages would count as sent. */
void coll_link_lost(struct coll_link *link, int error)
{
	struct coll_group *group = link->group;

	if (link->state == LINK_LOST || link->state == LINK_CLOSED)
		return;		/* known; or what was in flight has ended since */
	if (coll_is_our_lack(error) && group->state == GROUP_OK) {
		coll_link_events(group)->failed(group, error, group->rank, COLL_NONE,
						lack_reason(link, error));
	} else if (group->state == GROUP_OK && link->number && !coll_stream_may_end(link)) {
		coll_stream_lost(link, error);
		return;
	} else if (group->state == GROUP_OK && !link->number && !coll_link_may_end(link)) {
		coll_link_events(group)->lost(link, error == -ETIMEDOUT ? error : -ECONNRESET,
					      loss_reason(link, error));
		return;
	}
	coll_link_close(link);
}

void coll_link_leave(struct coll_link *link)
{
	if (link->leaving)
		return;
	/*
	 * Queued messages go out first, even if the connection is not up yet. The
	 * connecting rank says goodbye too, since the peer may have messages queued.
	 */
	if (link->state == LINK_CLOSED || link->state == LINK_LOST ||
	    (link->state == LINK_IDLE && !link->queue)) {
		coll_link_close(link);
		return;
	}
	link->leaving = true;
	coll_link_control(link, COLL_MESSAGE_BYE, 0, 0, 0);
	coll_link_touch(link);
}

void coll_link_close(struct coll_link *link)
{
	uint32_t i;

	if (link->state == LINK_CLOSED)
		return;
	for (i = 0; i < link->streams; i++)
		coll_link_close(&link->stream[i]);
	coll_link_events(link->group)->closing(link);
	coll_link_set_state(link, LINK_CLOSED);
	link->transport->close(link);
}

void coll_link_detached(struct coll_link *link)
{
	struct coll_exec *exec = link->exec;

	coll_assert(link->state == LINK_CLOSED && link->group->open_links);
	coll_socket_untouch(&link->socket);
	link->attached = false;
	link->socket.fd = -1;
	link->exec = NULL;
	if (exec)
		coll_link_events(link->group)->release(exec);
	coll_link_drop_queue(link, false);
	link->group->open_links--;
}
