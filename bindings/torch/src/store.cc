// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace coll_torch {

using Clock = std::chrono::steady_clock;

/* A call may be out when the group is gone: it keeps the store. */
static c10::intrusive_ptr<c10d::Store> store_of(void *argument)
{
	return c10::intrusive_ptr<c10d::Store>::reclaim_copy(static_cast<c10d::Store *>(argument));
}

/* No exception may go through the library, which is C. */
static int store_put(void *argument, const char *key, const void *value, size_t bytes)
try {
	const auto store = store_of(argument);
	const auto *first = static_cast<const uint8_t *>(value);

	store->set(key, std::vector<uint8_t>(first, first + bytes));
	return 0;
} catch (const std::exception &) {
	return -ECONNRESET;
}

/*
 * The time is that until the key is there: a store takes some to answer besides. A timeout is an
 * exception like others: the clock tells it. To a store 0 is no time limit.
 */
static int store_get(void *argument, const char *key, void *value, size_t *bytes, uint64_t ns)
{
	const auto store = store_of(argument);
	const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(
		std::chrono::nanoseconds(ns));
	const auto until = Clock::now() + time;

	try {
		if (!store->check({ key })) {
			if (time < std::chrono::milliseconds(1))
				return -ETIMEDOUT;
			store->wait({ key }, time);
		}
		const std::vector<uint8_t> got = store->get(key);

		if (got.size() > *bytes)
			return -EMSGSIZE;
		std::memcpy(value, got.data(), got.size());
		*bytes = got.size();
		return 0;
	} catch (const std::exception &) {
		return Clock::now() >= until ? -ETIMEDOUT : -ECONNRESET;
	}
}

/* All ranks count the groups of a store, each its own key: so none waits for another, and they agree. */
c10::intrusive_ptr<c10d::Store> store_of_group(const c10::intrusive_ptr<c10d::Store> &store, int rank)
{
	const int64_t group = store->add("coll/groups/" + std::to_string(rank), 1);

	return c10::make_intrusive<c10d::PrefixStore>("coll/" + std::to_string(group), store);
}

/* A number of torchrun's environment, or -1. */
static int environment(const char *name)
{
	const char *text = std::getenv(name);

	return text && *text ? std::atoi(text) : -1;
}

coll_job job_of(c10d::Store *store, int rank, int ranks)
{
	const int local_rank = environment("LOCAL_RANK");
	const int local_ranks = environment("LOCAL_WORLD_SIZE");
	coll_job job = {};

	job.size = sizeof(job);
	job.rank = rank;
	job.ranks = ranks;
	job.name = std::getenv("TORCHELASTIC_RUN_ID");
	job.argument = store;
	job.put = store_put;
	job.get = store_get;
	if (job.name && std::strlen(job.name) > 63)
		job.name = nullptr;
	/* It tells of all ranks, not of those of a part. */
	if (ranks == environment("WORLD_SIZE") && local_rank >= 0 && local_rank < local_ranks &&
	    local_ranks <= ranks) {
		job.local_rank = local_rank;
		job.local_ranks = local_ranks;
	}
	return job;
}

} // namespace coll_torch
