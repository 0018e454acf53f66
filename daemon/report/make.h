/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DAEMON_MAKE_H
#define COLL_DAEMON_MAKE_H

#include "gather.h"

/*
 * In a process of its own: gathers, enters the sandbox, and answers. Text that cannot be made is NULL.
 * `state`: colld's folder.
 */
void report_make(const struct report_question *question, const char *state,
		 struct colld_answer *answer);

#endif
