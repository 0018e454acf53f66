// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>

#include "core/port.h"
#include "engine.h"
#include "exposed.h"

/* A message has at most so many bytes. */
static const uint64_t exposed_max = 1ull << 48;
/* A reader that holds takes some microseconds, once it has a core. */
static const uint64_t hold_ns_max = COLL_SECOND;
/* ... of which the next reader has so much when another one has taken all. */
static const uint64_t hold_ns_least = COLL_SECOND / 50;

enum { NOT_HELD = 64 };			/* the last bytes: more than one element of any type */

#define load(field, order) __atomic_load_n(&(field), __ATOMIC_##order)
#define store(field, value, order) __atomic_store_n(&(field), value, __ATOMIC_##order)

/* ---- the writer ------------------------------------------------------------ */

/* Without a nonce nothing is exposed. */
void coll_exposed_init(struct coll_exposed *exposed, struct coll_ring *ring)
{
	struct coll_ring_shared *shared = ring->shared;

	*exposed = (struct coll_exposed){ .ring = ring };
	if (getrandom(exposed->nonce, sizeof(exposed->nonce), 0) != sizeof(exposed->nonce)) {
		exposed->refused = COLL_EXPOSED_MEMORY | COLL_EXPOSED_REGION;
		return;
	}
	shared->writer.nonce_address = (uintptr_t)exposed->nonce;
	memcpy(shared->writer.nonce, exposed->nonce, sizeof(exposed->nonce));
}

/* The reader sees the old mapping, or the new one, or that it changes. */
static void exposed_map(struct coll_exposed *exposed, const void *address, uint64_t offset)
{
	struct coll_ring_shared *shared = exposed->ring->shared;
	const uint32_t version = shared->writer.version | 1;

	store(shared->writer.version, version, SEQ_CST);
	store(shared->writer.address, (uintptr_t)address, RELEASE);	/* after the version */
	store(shared->writer.begin, exposed->begin, RELEASE);
	store(shared->writer.end, exposed->end, RELEASE);
	store(shared->writer.region, exposed->region, RELEASE);
	store(shared->writer.offset, offset, RELEASE);
	store(shared->writer.version, version + 1, SEQ_CST);
	coll_processor_barrier();
}

static uint32_t exposed_way(uint64_t region)
{
	return region ? COLL_EXPOSED_REGION : COLL_EXPOSED_MEMORY;
}

void coll_exposed_begin_there(struct coll_exposed *exposed, const void *address, uint64_t bytes,
			      uint64_t region, uint64_t offset)
{
	coll_assert(!(exposed->refused & exposed_way(region)) && bytes);
	exposed->begin = exposed->end;
	exposed->end += bytes;
	exposed->region = region;
	exposed_map(exposed, address, offset);
}

void coll_exposed_begin(struct coll_exposed *exposed, const void *address, uint64_t bytes)
{
	coll_exposed_begin_there(exposed, address, bytes, 0, 0);
}

/* Once said it stays said: what is chosen by it is done by it. */
bool coll_exposed_maps(struct coll_exposed *exposed)
{
	exposed->maps |= load(exposed->ring->shared->reader.maps, ACQUIRE) != 0;
	return exposed->maps && !(exposed->refused & COLL_EXPOSED_REGION);
}

int64_t coll_exposed_taken(struct coll_exposed *exposed, bool *refused)
{
	struct coll_ring_shared *shared = exposed->ring->shared;
	/* Not before the store of the flag that its writer sleeps. */
	const uint32_t refuses = load(shared->reader.refuses, SEQ_CST);
	const uint64_t taken = load(shared->reader.taken, SEQ_CST);

	if (taken < exposed->begin || taken > exposed->end)
		return -EPROTO;
	exposed->refused |= refuses;	/* for good, whatever the reader says later */
	*refused = exposed->refused & exposed_way(exposed->region);
	return taken - exposed->begin;
}

void coll_exposed_move(struct coll_exposed *exposed, uint64_t taken, const void *address)
{
	exposed->begin += taken;	/* what is taken stays taken */
	exposed->region = 0;
	exposed_map(exposed, address, 0);
}

static uint64_t hold_patience(uint64_t owed_until, uint64_t now)
{
	const uint64_t owed = owed_until > now ? owed_until - now : 0;

	return owed + hold_ns_least < hold_ns_max ? hold_ns_max - owed : hold_ns_least;
}

/* What is waited here is owed until as much time has gone by. False: the reader holds on. */
static bool hold_ends(const struct coll_ring_shared *shared, uint64_t *owed_until)
{
	const uint64_t start = coll_now(), until = start + hold_patience(*owed_until, start);
	uint64_t now = start;
	bool holds;

	while ((holds = load(shared->reader.holds, SEQ_CST)) && now < until) {
		sched_yield();
		now = coll_now();
	}
	*owed_until = (*owed_until > start ? *owed_until : start) + 2 * (now - start);
	return !holds;
}

bool coll_exposed_await_reader(struct coll_exposed *exposed, uint64_t *owed_until)
{
	struct coll_ring_shared *shared = exposed->ring->shared;

	if (!load(shared->reader.holds, SEQ_CST))
		return true;
	if (!exposed->left && hold_ends(shared, owed_until))
		return true;
	exposed->left = true;
	store(shared->writer.leaves, 1, SEQ_CST);
	coll_processor_barrier();
	return false;			/* it ends as well, if it is there */
}

void coll_exposed_stop(struct coll_exposed *exposed, uint64_t taken)
{
	exposed->begin += taken;
	exposed->end = exposed->begin;
	exposed->region = 0;
	exposed_map(exposed, NULL, 0);
}

void coll_exposed_withdraw(struct coll_exposed *exposed)
{
	struct coll_ring_shared *shared = exposed->ring->shared;

	exposed->refused = COLL_EXPOSED_MEMORY | COLL_EXPOSED_REGION;
	store(shared->writer.version, shared->writer.version | 1, SEQ_CST);
	coll_processor_barrier();
}

/* ---- the reader ------------------------------------------------------------ */

void coll_exposed_attach(struct coll_exposed *exposed, struct coll_ring *ring, int pid)
{
	*exposed = (struct coll_exposed){ .ring = ring, .pid = pid };
}

void coll_exposed_map_regions(struct coll_exposed *exposed, struct coll_regions *regions)
{
	exposed->regions = regions;
	store(exposed->ring->shared->reader.maps, 1, RELEASE);
}

struct mapping {
	uint32_t version;
	uint64_t address, begin, end, region, offset;
};

/* False: it changes just now, or was withdrawn. */
static bool mapping_read(const struct coll_exposed *exposed, struct mapping *mapping)
{
	const struct coll_ring_shared *shared = exposed->ring->shared;

	mapping->version = load(shared->writer.version, ACQUIRE);
	mapping->address = load(shared->writer.address, ACQUIRE);
	mapping->begin = load(shared->writer.begin, ACQUIRE);
	mapping->end = load(shared->writer.end, ACQUIRE);
	mapping->region = load(shared->writer.region, ACQUIRE);
	mapping->offset = load(shared->writer.offset, ACQUIRE);	/* before the version's second load */
	return !(mapping->version & 1) && load(shared->writer.version, RELAXED) == mapping->version;
}

static int64_t exposed_left(const struct coll_exposed *exposed, const struct mapping *mapping)
{
	if (mapping->begin > exposed->taken || mapping->end < exposed->taken ||
	    mapping->end - exposed->taken > exposed_max)
		return -EPROTO;
	return mapping->end - exposed->taken;
}

int64_t coll_exposed_waits(struct coll_exposed *exposed)
{
	struct mapping mapping;

	/* The line is the ring's counter's, which the caller has just looked at. */
	if (load(exposed->ring->shared->writer.end, ACQUIRE) == exposed->taken ||
	    !mapping_read(exposed, &mapping) || (exposed->refused & exposed_way(mapping.region)))
		return 0;
	/* What the writer wrote before goes first: look at its counter again. */
	if (coll_ring_available(exposed->ring))
		return 0;
	return exposed_left(exposed, &mapping);
}

/* The writer's bytes and its nonce, in one call. Returns bytes; -1: not all, or another's. */
static ssize_t read_memory(struct coll_exposed *exposed, struct iovec *local, int count,
			   const struct mapping *mapping, uint64_t bytes)
{
	const struct coll_ring_shared *shared = exposed->ring->shared;
	const uint64_t at = mapping->address + (exposed->taken - mapping->begin);
	uint8_t nonce[COLL_EXPOSED_NONCE];
	const struct iovec remote[2] = {
		{ (void *)(uintptr_t)at, bytes },
		{ (void *)(uintptr_t)load(shared->writer.nonce_address, RELAXED), sizeof(nonce) },
	};

	local[count] = (struct iovec){ nonce, sizeof(nonce) };
	exposed->calls += !!exposed->pid;
	if (!exposed->pid ||
	    process_vm_readv(exposed->pid, local, count + 1, remote, 2, 0) !=
		    (ssize_t)(bytes + sizeof(nonce)) ||
	    memcmp(nonce, shared->writer.nonce, sizeof(nonce)))
		return -1;
	return bytes;
}

bool coll_exposed_awaits_region(const struct coll_exposed *exposed)
{
	struct mapping mapping;

	return exposed->regions && mapping_read(exposed, &mapping) &&
	       mapping.region > exposed->regions->told;
}

/* Where this process has the bytes mapped that come next; NULL: it has not. */
static const uint8_t *mapped_at(const struct coll_exposed *exposed, const struct mapping *mapping,
				uint64_t bytes)
{
	const uint64_t taken = exposed->taken - mapping->begin, at = mapping->offset + taken;

	return mapping->region && exposed->regions && at >= taken ?
		       coll_regions_find(exposed->regions, mapping->region, at, bytes) : NULL;
}

/* What is next, and is sure to stay until coll_exposed_took(). */
static int64_t held_at(struct coll_exposed *exposed, uint64_t max, const uint8_t **data)
{
	struct mapping mapping;
	int64_t left;

	coll_processor_barrier();	/* the mapping is looked at after the flag */
	if (!mapping_read(exposed, &mapping))
		return 0;
	left = exposed_left(exposed, &mapping);
	if (left <= NOT_HELD)
		return left < 0 ? left : 0;
	left -= NOT_HELD;
	if ((uint64_t)left > max)
		left = max;
	*data = mapped_at(exposed, &mapping, left);
	return *data ? left : 0;
}

int64_t coll_exposed_hold(struct coll_exposed *exposed, uint64_t max, const uint8_t **data)
{
	struct coll_ring_shared *shared = exposed->ring->shared;
	int64_t bytes;

	if (!exposed->regions || !load(shared->writer.region, RELAXED))
		return 0;
	store(shared->reader.holds, 1, SEQ_CST);
	bytes = held_at(exposed, max, data);
	if (bytes <= 0)
		store(shared->reader.holds, 0, SEQ_CST);
	return bytes;
}

bool coll_exposed_took(struct coll_exposed *exposed, uint64_t bytes)
{
	struct coll_ring_shared *shared = exposed->ring->shared;

	exposed->taken += bytes;
	store(shared->reader.taken, exposed->taken, SEQ_CST);
	store(shared->reader.holds, 0, SEQ_CST);
	coll_processor_barrier();
	return !load(shared->writer.leaves, SEQ_CST);
}

static ssize_t read_mapped(const uint8_t *from, const struct iovec *local, int count)
{
	const uint8_t *at = from;

	for (; count; count--, local++) {
		memcpy(local->iov_base, at, local->iov_len);
		at += local->iov_len;
	}
	return at - from;
}

int64_t coll_exposed_read(struct coll_exposed *exposed, const struct iovec *iov, int count,
			  uint64_t max)
{
	struct coll_ring_shared *shared = exposed->ring->shared;
	struct iovec local[COLL_RECV_IOV_MAX + 1];
	struct mapping mapping;
	const uint8_t *mapped;
	uint64_t bytes = 0;
	int64_t left;
	ssize_t got;
	int i;

	if (!mapping_read(exposed, &mapping))
		return 0;
	left = exposed_left(exposed, &mapping);
	if (left <= 0)
		return left;
	if (max > (uint64_t)left)
		max = left;
	for (i = 0; i < count && bytes < max; i++) {
		local[i] = iov[i];
		if (local[i].iov_len > max - bytes)
			local[i].iov_len = max - bytes;
		bytes += local[i].iov_len;
	}
	mapped = mapped_at(exposed, &mapping, bytes);
	got = mapped ? read_mapped(mapped, local, i) :
		       read_memory(exposed, local, i, &mapping, bytes);
	/* If the writer had its memory back meanwhile, these bytes may be others. */
	coll_processor_barrier();
	if (load(shared->writer.version, SEQ_CST) != mapping.version)
		return 0;
	if (got < 0) {
		exposed->refused |= exposed_way(mapping.region);
		store(shared->reader.refuses, exposed->refused, SEQ_CST);
		return 0;
	}
	exposed->taken += got;
	store(shared->reader.taken, exposed->taken, SEQ_CST);
	return got;
}
