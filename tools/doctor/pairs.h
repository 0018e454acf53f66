/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Connections between the nodes, tried from each to each. */
#ifndef COLL_DOCTOR_PAIRS_H
#define COLL_DOCTOR_PAIRS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * On a host of the job in the environment: tries a connection to each other host, tells {"store":
 * error, "error": text, "to": [{host number, error, rtt_us, offset_us}]}, and then answers the others
 * until they have tried; store is absent if the job's store was reached, error if connections could be
 * tried. Returns what `tell` does, which takes the result over. `timeout`: when the whole doctor ends, in ns.
 */
bool doctor_pairs_try(uint64_t timeout, bool (*tell)(json_t *result));

#endif
