// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <nettle/base16.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include "libcoll/base/descriptors.h"
#include "libcoll/base/memory_limit.h"
#include "libcoll/engine/memory.h"
#include "shared_memory.h"

enum {
	/* Of a ring: one process has two for each peer on its node, and so much in all. */
	RING_MIN = 16 << 10,
	RING_MAX = 256 << 10,
	RINGS_ALL = 4 << 20,
	/*
	 * Of a region, likewise; of the node's ranks together. Each has two: the first one of its arena, and its area
	 * of publications (engine/published.h). Its boards (engine/board.h) are 64 KB, of what it takes besides.
	 */
	REGION_MIN = 256 << 10,
	REGION_MAX = 4 << 20,
	REGIONS_ALL = 128 << 20,
	/* What a rank takes besides, after it has connected. */
	RANK_NEEDS = 4 << 20,
};

/* ---- the address ----------------------------------------------------------- */

#define NAME "coll-"

/*
 * An abstract name, of the network namespace. Every user of the node can read it, so it does not
 * tell what the process has published. Who has it proves that it is the process.
 */
void coll_local_address(struct coll_address *address, const uint8_t key[COLL_KEY_BYTES],
			const uint8_t process[COLL_PROCESS_BYTES])
{
	struct sockaddr_un *local = (struct sockaddr_un *)&address->socket;
	char purpose[sizeof("name ") + 2 * COLL_PROCESS_BYTES] = "name ";
	uint8_t digest[COLL_KEY_BYTES];
	char *name = local->sun_path + 1;

	base16_encode_update(purpose + strlen(purpose), COLL_PROCESS_BYTES, process);
	coll_key_derive(digest, key, purpose);
	memset(address, 0, sizeof(*address));
	local->sun_family = AF_UNIX;
	memcpy(name, NAME, sizeof(NAME) - 1);
	base16_encode_update(name + sizeof(NAME) - 1, COLL_PROCESS_BYTES, digest);
	address->bytes = offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(NAME) - 1 +
			 2 * COLL_PROCESS_BYTES;
}

bool coll_listens_for_memory(const struct coll_context *context)
{
	return context->listens_locally;
}

bool coll_local_peer_is_trusted(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) &&
	       (!peer.uid || peer.uid == geteuid());
}

/* ---- the memory ------------------------------------------------------------ */

uint64_t coll_ranks_here(const struct coll_context *context)
{
	const struct coll_boot *boot = context->boot;

	return boot->local_ranks > 0 ? boot->local_ranks : boot->ranks;
}

static uint64_t ring_size(const struct coll_context *context)
{
	uint64_t size = RING_MAX;

	while (size > RING_MIN && 2 * size * coll_ranks_here(context) > RINGS_ALL)
		size /= 2;
	return size;
}

/* That may ask at once. Where a launcher does not say how many are here: one on each core. */
static uint64_t ranks_that_ask(const struct coll_context *context)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	const uint64_t ranks = coll_ranks_here(context);

	return context->boot->local_ranks <= 0 && cores > 0 && ranks > (uint64_t)cores ?
		       (uint64_t)cores : ranks;
}

/* Such as regions are: else peers of this node map nothing. */
static bool has_files(void)
{
	const int fd = coll_memory_file("coll");

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void coll_shared_memory_offer(struct coll_context *context)
{
	struct coll_shared_arena *arena = &context->engine.arena;

	arena->shares = context->engine.exposes && has_files();
	arena->asking = ranks_that_ask(context);
	arena->limited = context->memory_is_limited;
	arena->least = REGION_MAX;
	while (arena->least > REGION_MIN && 2 * arena->least * coll_ranks_here(context) > REGIONS_ALL)
		arena->least /= 2;
}

/*
 * Beyond a cgroup's limit the kernel kills a rank, and no call says so before. What a rank takes
 * besides is asked for once, before its first connection.
 */
bool coll_shared_memory_is_left(const struct coll_context *context)
{
	const uint64_t ranks = ranks_that_ask(context);
	const uint64_t rings = ranks * coll_memory_bytes(ring_size(context));
	const uint64_t besides = (context->counters.memory_connections ? 1 : ranks) * RANK_NEEDS;

	return !context->memory_is_limited || coll_memory_limit_left() >= rings + besides;
}

static void *file_map(int fd, uint64_t size)
{
	return mmap(NULL, coll_memory_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Unmaps it if it cannot. Before Linux 5.14 pages are mapped one by one, as they are touched. */
static struct coll_memory *memory_at(void *map, uint64_t size, bool first)
{
	struct coll_memory *memory;

	if (map == MAP_FAILED)
		return NULL;
	madvise(map, coll_memory_bytes(size), MADV_POPULATE_READ);
	memory = coll_memory_make(map, size, first);
	if (!memory)
		munmap(map, coll_memory_bytes(size));
	return memory;
}

static int file_make(void)
{
	const int fd = coll_memory_file("coll");

	return fd < 0 && errno == EMFILE && coll_descriptors_raise() ? coll_memory_file("coll") : fd;
}

struct coll_memory *coll_shared_memory_make(const struct coll_context *context, int *fd)
{
	const uint64_t size = ring_size(context);
	struct coll_memory *memory = NULL;

	*fd = -1;
	if (!coll_file_may_have(coll_memory_bytes(size)))
		return NULL;
	*fd = file_make();
	if (*fd < 0)
		return NULL;
	if (coll_file_fill(*fd, coll_memory_bytes(size)) && !fcntl(*fd, F_ADD_SEALS, COLL_SIZE_SEALS))
		memory = memory_at(file_map(*fd, size), size, true);
	if (memory)
		return memory;
	close(*fd);
	*fd = -1;
	return NULL;
}

/* The ring size of memory with so many bytes; 0: none. */
static uint64_t size_of(uint64_t bytes)
{
	uint64_t size = RING_MIN;

	while (size < RING_MAX && coll_memory_bytes(size) != bytes)
		size *= 2;
	return coll_memory_bytes(size) == bytes ? size : 0;
}

bool coll_shared_memory_is_kept(int fd)
{
	const uint64_t bytes = coll_file_sealed(fd, COLL_FILE_SEALS);

	return bytes && coll_file_is_whole(fd, bytes);
}

/* What has a hole is not touched: that would fill it. */
static void *file_keep(int fd, uint64_t size)
{
	void *map = file_map(fd, size);

	if (map == MAP_FAILED || (!fcntl(fd, F_ADD_SEALS, COLL_FILE_SEALS) && coll_shared_memory_is_kept(fd)))
		return map;
	munmap(map, coll_memory_bytes(size));
	return MAP_FAILED;
}

struct coll_memory *coll_shared_memory_take(int fd)
{
	struct coll_memory *memory = NULL;
	uint64_t size;

	if (fd < 0)
		return NULL;
	size = size_of(coll_file_sealed(fd, COLL_SIZE_SEALS));
	if (size)
		memory = memory_at(file_keep(fd, size), size, false);
	close(fd);
	return memory;
}
