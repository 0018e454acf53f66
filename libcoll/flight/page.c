// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The page: made, shared, given up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "timed.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/descriptors.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static int page_memfd(uint32_t rank)
{
	char name[48];

	snprintf(name, sizeof(name), "%s:%u", COLL_FLIGHT_NAME, rank);
	return coll_memory_file(name);
}

/* All of its memory is taken here: a later store cannot fail for want of it. */
static struct coll_flight_page *page_share(struct coll_flight *flight, uint32_t rank)
{
	const size_t bytes = sizeof(struct coll_flight_page);
	void *map = MAP_FAILED;
	int fd;

	if (!coll_file_may_have(bytes)) {
		errno = EFBIG;
		return NULL;
	}
	fd = page_memfd(rank);
	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, bytes) && coll_file_fill(fd, bytes) &&
	    fcntl(fd, F_ADD_SEALS, SEALS) >= 0)
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		const int error = errno;

		close(fd);
		errno = error;
		return NULL;
	}
	/* A child that is forked is not the rank. */
	madvise(map, bytes, MADV_DONTFORK);
	flight->fd = fd;
	return map;
}

static void page_fill(struct coll_flight_page *page, const struct coll_flight_rank *rank)
{
	struct utsname system;
	struct timespec time;

	page->version = COLL_FLIGHT_VERSION;
	page->bytes = sizeof(*page);
	page->rank = rank->rank;
	page->ranks = rank->ranks;
	page->local_rank = rank->local_rank;
	page->local_ranks = rank->local_ranks;
	page->pid = getpid();
	snprintf(page->job, sizeof(page->job), "%s", rank->job);
	snprintf(page->progress, sizeof(page->progress), "%s", rank->progress);
	snprintf(page->engine, sizeof(page->engine), "%s", rank->engine);
	snprintf(page->program, sizeof(page->program), "%s", program_invocation_short_name);
	if (!uname(&system))
		snprintf(page->host, sizeof(page->host), "%.63s", system.nodename);
	clock_gettime(CLOCK_REALTIME, &time);
	page->realtime = time.tv_sec * COLL_SECOND + time.tv_nsec;
	page->opened = page->now = page->left = coll_now();
	/* Last: a page with it is whole. */
	__atomic_store_n(&page->magic, COLL_FLIGHT_MAGIC, __ATOMIC_RELEASE);
}

int coll_flight_open(struct coll_flight *flight, const struct coll_flight_rank *rank, bool shared,
		     const char **why)
{
	struct coll_flight_page *page = NULL;

	flight->fd = -1;
	*why = NULL;
	if (shared) {
		page = page_share(flight, rank->rank);
		*why = page ? NULL : strerror(errno);
	}
	if (!page)
		page = calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	flight->page = page;
	page_fill(page, rank);
	coll_flight_own(flight);
	return 0;
}

void coll_flight_own(struct coll_flight *flight)
{
	flight->page->owner = gettid();
	flight->page->delayed_before = coll_core_wait_now(&flight->core_wait) - flight->page->delayed;
}

void coll_flight_close(struct coll_flight *flight)
{
	if (!flight->page)
		return;
	coll_flight_dump_off(flight);
	coll_core_wait_close(&flight->core_wait);
	if (flight->fd >= 0) {
		munmap(flight->page, sizeof(*flight->page));
		close(flight->fd);
	} else {
		free(flight->page);
	}
	flight->page = NULL;
}

struct coll_flight_group *coll_flight_group_take(struct coll_flight *flight, const void *owner,
						 uint8_t *entry)
{
	const uint32_t number = flight->groups++ % COLL_FLIGHT_GROUPS;

	flight->group_of[number] = owner;
	*entry = number + 1;
	memset(&flight->page->group[number], 0, sizeof(flight->page->group[number]));
	return &flight->page->group[number];
}

/* Runs in flight of the call with this entry: bits of flight->taken. */
static uint64_t runs_of_call(const struct coll_flight *flight, uint32_t number)
{
	const struct coll_flight_run *run = flight->page->run;
	uint64_t left, runs = 0;

	for (left = flight->taken; left; left &= left - 1) {
		const uint32_t entry = __builtin_ctzll(left);

		if (run[entry].where != COLL_FLIGHT_FREE && run[entry].call == number)
			runs |= 1ull << entry;
	}
	return runs & ~flight->strays;
}

/* The oldest entry of a call without runs in flight; where there is none, the oldest one, whose runs go astray. */
static uint32_t call_to_replace(struct coll_flight *flight)
{
	uint32_t tries = COLL_FLIGHT_CALLS, number;

	while (tries && runs_of_call(flight, flight->calls % COLL_FLIGHT_CALLS)) {
		flight->calls++;
		tries--;
	}
	number = flight->calls++ % COLL_FLIGHT_CALLS;
	flight->strays |= runs_of_call(flight, number);
	return number;
}

struct coll_flight_call *coll_flight_call_take(struct coll_flight *flight, const void *owner,
					       uint8_t *entry)
{
	const uint32_t number = call_to_replace(flight);

	flight->call_of[number] = owner;
	*entry = number + 1;
	coll_flight_sum_join(&flight->page->past, &flight->page->call[number].sum);
	memset(&flight->page->call[number], 0, sizeof(flight->page->call[number]));
	return &flight->page->call[number];
}
