/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* torch's store of a group, as the one of a job of libcoll. */
#ifndef COLL_TORCH_STORE_H
#define COLL_TORCH_STORE_H

#include <coll.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace coll_torch {

/*
 * The part of torch's store that is this group's alone. A program may make a group, destroy it and make
 * it again by the same store, where the keys of the first are left. Each rank makes it once a group.
 */
c10::intrusive_ptr<c10d::Store> store_of_group(const c10::intrusive_ptr<c10d::Store> &store, int rank);

/* The job of a group's ranks; `store` is its argument, and lives as long as it is used. */
coll_job job_of(c10d::Store *store, int rank, int ranks);

} // namespace coll_torch

#endif
