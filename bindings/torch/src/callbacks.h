/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Threads for the callbacks of futures, which are the program's own code. */
#ifndef COLL_TORCH_CALLBACKS_H
#define COLL_TORCH_CALLBACKS_H

#include <functional>

namespace coll_torch {

/*
 * Has a thread run it soon. A callback may wait for another one, so there is a thread for each
 * that runs; they stay for a second.
 */
void run_callbacks(std::function<void()> callbacks);

} // namespace coll_torch

#endif
