/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What libcollmpi.so offers besides MPI's own functions, for tests and tools that
 * look it up by dlsym().
 */
#ifndef COLLMPI_H
#define COLLMPI_H

#include <stdint.h>

/*
 * Collective calls of this rank so far that libcoll did, and that were handed to
 * the MPI. Returns 1 if the shim is at work, else 0.
 */
int collmpi_counts(uint64_t *ours, uint64_t *handed);

/*
 * Trials of whether the MPI is faster (COLL_MPI_HAND) count libcoll's times times this. It may differ
 * between ranks. Returns 1 if there are trials, else 0.
 */
int collmpi_scale_trials(double factor);

/*
 * So many ns are the deadline for the other ranks of a call that goes to the MPI, in place of the job's: with
 * a deadline of the user's no call goes there. This rank alone. Returns 1 if the shim is at work, else 0.
 */
int collmpi_hand_deadline(uint64_t ns);

#endif
