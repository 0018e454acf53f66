/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DAEMON_SANDBOX_H
#define COLL_DAEMON_SANDBOX_H

/*
 * From now on this process can compute, and write to what it has open: it opens, executes, sends signals to
 * and traces nothing. For what a user's pages say. 0 or -errno; -ENOSYS: not known on this machine.
 */
int report_sandbox_enter(void);

#endif
