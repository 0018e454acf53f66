/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A barrier that tells which ranks do not come, over the store: the group is not touched, and works on. */
#ifndef COLL_TORCH_MONITORED_H
#define COLL_TORCH_MONITORED_H

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace coll_torch {

struct Monitored {
	c10d::Store &store;
	int rank, ranks;
	uint64_t sequence;		/* of the monitored barriers of this group */
	std::chrono::milliseconds timeout;
	bool every;			/* name all that are missing, not only the first */
};

/*
 * Rank 0 waits for the others, at most for the timeout, and tells them what came out; they wait for
 * that at most twice as long. Throws on every rank that came. Some round trips to the store.
 */
void monitored_barrier(const Monitored &barrier);

} // namespace coll_torch

#endif
