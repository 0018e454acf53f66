// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Regions of this process' arena (shared_arena.h), of which peers are told, and those of a peer (regions.h). */
#include <errno.h>
#include <sys/socket.h>

#include "memory.h"
#include "memory_parts.h"

enum { LISTENS_MAX = 64 };	/* for one announcement */

/* ---- this process' --------------------------------------------------------------- */

static uint32_t region_index(const struct coll_memory *memory, const struct coll_shared_region *region)
{
	return region - memory->socket->engine->arena.region;
}

/* By which the peer knows it; 0: it was not told, or others have come since. */
static uint64_t region_number(const struct coll_memory *memory,
			      const struct coll_shared_region *region)
{
	const uint32_t index = region_index(memory, region);
	const uint64_t number = memory->region[index].number;

	return memory->region[index].region == region->number &&
	       memory->announced - number < COLL_REGIONS_KNOWN ? number : 0;
}

/* A socket that is full cannot take it now. */
static bool region_tell(struct coll_memory *memory, uint8_t byte, int fd)
{
	memory->socket->engine->counters->syscalls++;
	return coll_send_with_descriptor(memory->socket->fd, &byte, 1, fd) == 1;
}

bool coll_memory_announce(struct coll_memory *memory, uint8_t byte,
			  const struct coll_shared_region *region)
{
	return region_tell(memory, byte, region->fd);
}

static uint64_t region_announce(struct coll_memory *memory, const struct coll_shared_region *region)
{
	const uint32_t index = region_index(memory, region);

	if (!coll_memory_announce(memory, COLL_REGION_IS_ANNOUNCED, region))
		return 0;
	memory->region[index].region = region->number;
	memory->region[index].number = ++memory->announced;
	return memory->announced;
}

uint64_t coll_memory_region_of(struct coll_memory *memory, const struct iovec *iov, uint64_t *offset)
{
	struct coll_engine *engine = memory->socket->engine;
	const struct coll_shared_region *region;
	uint64_t number;

	if (!engine->exposes || !engine->arena.made || !coll_exposed_maps(&memory->exposed_out))
		return 0;
	region = coll_shared_find(&engine->arena, iov->iov_base, iov->iov_len);
	if (!region)
		return 0;
	*offset = (const uint8_t *)iov->iov_base - region->base;
	number = region_number(memory, region);
	return number ? number : region_announce(memory, region);
}

void *coll_memory_block(struct coll_engine *engine, uint64_t bytes)
{
	return coll_shared_take(&engine->arena, bytes);
}

void *coll_memory_block_one(struct coll_engine *engine, uint64_t bytes)
{
	return coll_shared_take_one(&engine->arena, bytes);
}

/* Who cannot be told has it mapped until the connection ends, or 32 others have come. */
static void region_drop(struct coll_engine *engine, struct coll_shared_region *region)
{
	struct coll_memory *memory;

	for (memory = engine->memories; memory; memory = memory->next) {
		const uint64_t number = region_number(memory, region);

		if (number)
			region_tell(memory, COLL_REGION_IS_DROPPED + number % COLL_REGIONS_KNOWN, -1);
	}
	coll_shared_drop(region);
}

int coll_memory_block_free(struct coll_engine *engine, void *block)
{
	const int error = coll_shared_give(&engine->arena, block);
	struct coll_shared_region *region;

	while ((region = coll_shared_unused(&engine->arena)))
		region_drop(engine, region);
	return error;
}

/* ---- the peer's -------------------------------------------------------------------- */

bool coll_memory_listen(struct coll_memory *memory)
{
	uint8_t bytes[64];
	int fd = -1;
	const int socket = memory->socket->fd;
	const bool maps = memory->socket->engine->exposes;
	const ssize_t got = maps ? coll_recv_with_descriptor(socket, bytes, sizeof(bytes), &fd) :
				   recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
	const int error = errno;

	memory->socket->engine->counters->syscalls++;
	if (maps)
		coll_regions_hear(&memory->regions, bytes, got > 0 ? got : 0, fd);
	if (memory->regions.area.base)
		__atomic_store_n(&memory->in.shared->published.maps, 1, __ATOMIC_RELEASE);
	if (got > 0)
		return true;
	if (!got || (error != EAGAIN && error != EINTR))
		coll_memory_end(memory, got < 0 ? -error : 0);
	return false;
}

void coll_memory_listen_while(struct coll_memory *memory, bool (*awaits)(const struct coll_memory *memory))
{
	int listens = 0;

	while (awaits(memory) && listens++ < LISTENS_MAX && coll_memory_listen(memory))
		;
}

static bool awaits_region(const struct coll_memory *memory)
{
	return coll_exposed_awaits_region(&memory->exposed_in);
}

void coll_memory_await_region(struct coll_memory *memory)
{
	coll_memory_listen_while(memory, awaits_region);
}
