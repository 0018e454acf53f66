/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_EXEC_STALL_H
#define COLL_EXEC_STALL_H

#include "exec.h"

/*
 * Half of a run's deadline of 10 s or more has gone: the lowest rank of this node that waits so long says so on
 * stderr, with the first cause, once a deadline. Reads the pages of this node's ranks, which
 * takes some ms, or a second where there are thousands of processes.
 */
void coll_stall_report(const struct coll_exec *exec, uint64_t now);

#endif
