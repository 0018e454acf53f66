/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The fabric: the circuits that a group's schedules are planned for. */
#ifndef COLL_FABRIC_H
#define COLL_FABRIC_H

#include <stdint.h>

/* The reconfiguration delay until one is measured. Seconds. */
#define CIRCUIT_DELTA	10e-3

struct coll_circuit_fabric {
	uint32_t version;	/* from 1 on */
	uint32_t limit;		/* circuits at once, in all; 0: as many as ports allow */
	double delta, alpha, beta;	/* seconds; alpha and beta 0: not measured */
	uint32_t ports[];	/* per rank: its share of its node's ports */
};

#endif
