/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Connect and release ops: the circuit manager (uapi/coll_circuit.h) is asked, and
 * tells when the circuit carries data. Without a manager, and between ranks of one
 * node, circuits are always there. A manager that is restarted is asked again for
 * all that was wanted.
 */
#ifndef COLL_LIBCOLL_CIRCUIT_H
#define COLL_LIBCOLL_CIRCUIT_H

#include "internal.h"

/*
 * Meets the manager that the option `circuits` names, and tells the other ranks which
 * node this is; after the boot, before its first fence. Why not is in `why`.
 */
int circuits_open(struct coll_context *context, char *why, size_t why_bytes);
void circuits_close(struct coll_context *context);

/* Whether the link may be opened now; else it is when its circuit is lit. */
bool circuits_free(const struct coll_exec *exec, uint32_t peer);

/* A connect op has begun: true if it is done already, else it is reported when it is. */
bool circuits_connect(struct coll_exec *exec, uint32_t op);
void circuits_release(struct coll_exec *exec, uint32_t op);
/* Gives back what the run wants or has. */
void circuits_run_over(struct coll_exec *exec);

#endif
