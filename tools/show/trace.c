// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "show.h"
#include "tools/common/command.h"
int show_trace(const struct coll_flight_job *job)
{
	(void)job;
	return COMMAND_ERROR;
}
