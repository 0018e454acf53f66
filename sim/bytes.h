/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Real bytes in a simulated run: the payload of a send is copied when the send starts; all
 * other ops take effect when they are done.
 */
#ifndef COLL_SIM_BYTES_H
#define COLL_SIM_BYTES_H

#include "program.h"

struct sim_bytes;

/* in[] and out[]: each rank's buffers. The program is exact. */
int bytes_new(const struct sim_program *program, const void *const *in, void *const *out,
	      struct sim_bytes **bytes);
void bytes_free(struct sim_bytes *bytes);

/* Rank's send `op` starts; it is for op `recv` of rank `to`. -ENOMEM. */
int bytes_send(struct sim_bytes *bytes, u32 rank, u32 op, u32 to, u32 recv);
void bytes_done(struct sim_bytes *bytes, u32 rank, u32 op);

#endif
