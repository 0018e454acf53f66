// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <sys/timex.h>

#include "facts.h"
#include "files.h"

#define SOURCE "/sys/devices/system/clocksource/clocksource0/"

void doctor_read_clock(struct doctor_clock_facts *facts, const char *root)
{
	struct timex asked = { .modes = 0 };
	const int state = adjtimex(&asked);

	*facts = (struct doctor_clock_facts){
		.synchronized = state >= 0 && state != TIME_ERROR && !(asked.status & STA_UNSYNC),
		.error_us = state < 0 ? -1 : asked.maxerror,
	};
	doctor_file_line(root, facts->source, DOCTOR_WORD, SOURCE "current_clocksource");
	doctor_file_line(root, facts->available, DOCTOR_WORD, SOURCE "available_clocksource");
}
