/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A flight page of a job of one rank, for tests of what is written there. */
#ifndef COLL_FLIGHT_PAGE_H
#define COLL_FLIGHT_PAGE_H

#include <string.h>

#include "libcoll/flight/flight.h"

static void open_page(struct coll_flight *flight)
{
	const struct coll_flight_rank rank = { .job = "job", .progress = "call", .engine = "uring",
					       .ranks = 1 };
	const char *why;

	memset(flight, 0, sizeof(*flight));
	assert_int_equal(coll_flight_open(flight, &rank, false, &why), 0);
}

#endif
