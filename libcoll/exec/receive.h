/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The table of events that links report to this floor. */
#ifndef COLL_RECEIVE_H
#define COLL_RECEIVE_H

#include "libcoll/link/link.h"

extern const struct coll_link_events coll_exec_link_events;

#endif
