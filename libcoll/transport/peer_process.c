// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcoll/engine/engine.h"
#include "libcoll/engine/published.h"
#include "peer_process.h"

struct coll_peer_process {
	struct coll_peer_process *next;
	struct coll_context *context;
	uint32_t world;			/* rank in the job */
	struct coll_watch watch;	/* of its pidfd; -1: it has ended */
	struct coll_published_process reader;
};

struct coll_process_id coll_process_self(void)
{
	struct stat namespace = { 0 };

	stat("/proc/self/ns/pid", &namespace);
	return (struct coll_process_id){ .pid = getpid(), .namespace = namespace.st_ino };
}

/* A watch that failed says nothing of the process: its connections tell of its end. */
static bool process_has_ended(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

static void peer_ended(struct coll_watch *watch, int events)
{
	struct coll_peer_process *peer = watch->owner;

	(void)events;
	if (!process_has_ended(watch->fd))
		return;
	close(watch->fd);
	watch->fd = -1;
	coll_memory_reader_ended(&peer->reader);
	peer->context->peer_ended(peer->context, peer->world);
}

static struct coll_peer_process *peer_find(const struct coll_context *context, uint32_t world)
{
	struct coll_peer_process *peer = context->peer_processes;

	while (peer && peer->world != world)
		peer = peer->next;
	return peer;
}

int coll_peer_watch(struct coll_context *context, uint32_t world, struct coll_process_id id)
{
	struct coll_peer_process *peer = peer_find(context, world);
	int fd;

	if (peer)
		return peer->watch.fd < 0 ? -ECONNRESET : 0;
	if (!id.pid || id.namespace != coll_process_self().namespace)
		return 0;
	fd = syscall(SYS_pidfd_open, id.pid, 0);
	if (fd < 0)
		return errno == ESRCH ? -ECONNRESET : 0;
	peer = calloc(1, sizeof(*peer));
	if (!peer) {
		close(fd);
		return 0;
	}
	peer->context = context;
	peer->world = world;
	peer->watch = (struct coll_watch){ .ready = peer_ended, .owner = peer, .fd = fd };
	if (coll_engine_watch(&context->engine, &peer->watch, POLLIN)) {
		close(fd);
		free(peer);
		return 0;
	}
	peer->next = context->peer_processes;
	context->peer_processes = peer;
	return 0;
}

bool coll_peer_is_watched(const struct coll_context *context, uint32_t world)
{
	return peer_find(context, world);
}

bool coll_peer_has_ended(const struct coll_context *context, uint32_t world)
{
	const struct coll_peer_process *peer = peer_find(context, world);

	return peer && peer->watch.fd < 0;
}

struct coll_published_process *coll_peer_reader(const struct coll_context *context, uint32_t world)
{
	struct coll_peer_process *peer = peer_find(context, world);

	return peer ? &peer->reader : NULL;
}

void coll_peers_unwatch(struct coll_context *context)
{
	struct coll_peer_process *peer;

	while ((peer = context->peer_processes)) {
		context->peer_processes = peer->next;
		if (peer->watch.armed)
			coll_engine_unwatch(&context->engine, &peer->watch);
		if (peer->watch.fd >= 0)
			close(peer->watch.fd);
		free(peer);
	}
}
