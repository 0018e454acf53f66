/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Connections between the nodes, tried from each to each. */
#ifndef COLL_DOCTOR_PAIRS_H
#define COLL_DOCTOR_PAIRS_H

#include <jansson.h>

/*
 * On a host of the job in the environment: tries a connection to each other host, and answers
 * theirs, for some seconds. Returns {"store": error, "to": [{host number, error, rtt_us,
 * offset_us}]}; store is absent if the job's store was reached.
 */
json_t *doctor_pairs_try(void);

#endif
