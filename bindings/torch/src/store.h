/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* torch's store of a group, as the one of a job of libcoll. */
#ifndef COLL_TORCH_STORE_H
#define COLL_TORCH_STORE_H

#include <coll.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace coll_torch {

/* The job of a group's ranks; `store` is its argument, and lives as long as it is used. */
coll_job job_of(c10d::Store *store, int rank, int ranks);

} // namespace coll_torch

#endif
