/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive and reduce fused: of a message that the pair brings, the sender's pages are an operand,
 * and nothing is written that is only to be read again. The program marks which receives are for
 * one reduce alone (COLL_DEVICE_LOAD). Such a reduce is done in part before it starts: run->got.
 */
#ifndef COLL_KMOD_FUSED_H
#define COLL_KMOD_FUSED_H

#include "run.h"

/* The marks that the program gave, checked. 0 or a negative errno; *reason: what is wrong with *op. */
int kcoll_fused_load(struct kcoll_loaded *loaded, u64 address, u32 *op, const char **reason);
/* Whether the message that the link begins to take is reduced as it comes. */
bool kcoll_fused_begins(const struct kcoll_link *link, const struct kcoll_run *run, u32 recv);
/* Reduces the next bytes of that message, in `pages`. Does not sleep. */
void kcoll_fused_reduce(struct kcoll_run *run, u32 recv, const struct bio_vec *pages, int count);

#endif
