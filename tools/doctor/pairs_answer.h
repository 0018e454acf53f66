/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The process of a host that answers the others. */
#ifndef COLL_DOCTOR_PAIRS_ANSWER_H
#define COLL_DOCTOR_PAIRS_ANSWER_H

#include <stdint.h>
#include <sys/types.h>

enum { PAIRS_TOKEN = 16 };

/*
 * Starts it; it dies with this process. Fills a fresh token, which a connection must begin with,
 * and the port. -1: no memory, or no port.
 */
pid_t pairs_answer(unsigned char token[PAIRS_TOKEN], int *port);

/* ns since 1970 */
uint64_t pairs_time_of_day(void);

#endif
