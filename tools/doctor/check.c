// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

const char *const doctor_level_names[] = { "ok", "unknown", "note", "slow", "fail", NULL };

static const struct doctor_check *const families[] = {
	doctor_transport_checks, doctor_network_checks, doctor_cpus_checks,
	doctor_memory_checks, doctor_clock_checks, doctor_software_checks,
};

const struct doctor_check *doctor_check_at(int index)
{
	const struct doctor_check *check;
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		for (check = families[i]; check->name; check++)
			if (!index--)
				return check;
	return NULL;
}

const struct doctor_check *doctor_check_named(const char *name)
{
	const struct doctor_check *check;
	int i;

	for (i = 0; (check = doctor_check_at(i)); i++)
		if (!strcmp(check->name, name))
			return check;
	return NULL;
}

void doctor_judge(const struct doctor_check *check, const struct doctor_facts *facts,
		  struct doctor_finding *finding)
{
	*finding = (struct doctor_finding){ .check = check };
	check->judge(facts, finding);
	if (finding->level <= DOCTOR_UNKNOWN)
		return;
	if (!*finding->cost)
		snprintf(finding->cost, DOCTOR_TEXT, "%s", check->cost);
	if (!*finding->advice)
		snprintf(finding->advice, DOCTOR_TEXT, "%s", check->advice);
}

void doctor_find(struct doctor_finding *finding, enum doctor_level level, const char *format, ...)
{
	va_list list;

	finding->level = level;
	va_start(list, format);
	vsnprintf(finding->found, DOCTOR_TEXT, format, list);
	va_end(list);
}

void doctor_cost(struct doctor_finding *finding, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(finding->cost, DOCTOR_TEXT, format, list);
	va_end(list);
}

void doctor_advise(struct doctor_finding *finding, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(finding->advice, DOCTOR_TEXT, format, list);
	va_end(list);
}
