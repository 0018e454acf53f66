// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "tools/common/arguments.h"
#include "node/units.h"
#include "verdict.h"

/* The strictest last. */
static const struct profile {
	struct noise_limits limits;
	const char *about;
} profiles[] = {
	{ { "quiet", 0.001, 100e3, 1100 },
	  "a tick of at most 1000 Hz, and nothing else longer than 100 us; 0.1 % of the time" },
	{ { "k-computer", 0.00025, 50e3, 5 },
	  "events of at most 50 us, 200 ms apart (0.025 %): asked of the K computer's system" },
	{ { "isolated", 1e-6, 10e3, 10 / 60. },
	  "a CPU with nohz_full and nothing else: 10 events a minute, 10 us, 1e-6 of the time" },
};

bool noise_limits_profile(const char *command, const char *name, struct noise_limits *limits)
{
	size_t i;

	for (i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		if (!strcmp(profiles[i].limits.profile, name)) {
			*limits = profiles[i].limits;
			return true;
		}
	fprintf(stderr, "%s %s: no profile '%s'; valid:", argument_program, command, name);
	for (i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		fprintf(stderr, "%s %s", i ? "," : "", profiles[i].limits.profile);
	fprintf(stderr, "\n");
	return false;
}

void noise_limits_list(FILE *to)
{
	size_t i;

	for (i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		fprintf(to, "      %-12s %s\n", profiles[i].limits.profile, profiles[i].about);
}

bool noise_limits_any(const struct noise_limits *limits)
{
	return limits->share >= 0 || limits->length >= 0 || limits->rate >= 0;
}

/* ---- findings ----------------------------------------------------------------------------- */

struct finding {
	const char *what, *unit;
	double limit, value;
};

enum { FINDINGS = 3 };

static void verdict_find(const struct noise_limits *limits, const struct noise_summary *cpu,
			 struct finding *finding)
{
	finding[0] = (struct finding){ "share", "of the time", limits->share, cpu->share };
	finding[1] = (struct finding){ "longest", "ns", limits->length, cpu->length.max };
	finding[2] = (struct finding){ "rate", "events/s", limits->rate, cpu->rate };
}

static bool verdict_within(const struct finding *finding)
{
	return finding->limit < 0 || finding->value <= finding->limit;
}

static bool verdict_passed(const struct noise_limits *limits, const struct noise_view *view)
{
	struct finding finding[FINDINGS];
	bool passed = true;
	u32 c, i;

	for (c = 0; c < view->capture->head.cpus; c++) {
		verdict_find(limits, &view->cpu[c], finding);
		for (i = 0; i < FINDINGS; i++)
			passed &= verdict_within(&finding[i]);
	}
	return passed;
}

const char *noise_profile_passed(const struct noise_view *view)
{
	size_t i = sizeof(profiles) / sizeof(*profiles);

	while (i--)
		if (verdict_passed(&profiles[i].limits, view))
			return profiles[i].limits.profile;
	return NULL;
}

bool noise_verdict_print(const struct noise_limits *limits, const struct noise_view *view,
			 FILE *to)
{
	struct finding finding[FINDINGS];
	bool passed = true;
	u32 c, i;

	for (c = 0; c < view->capture->head.cpus; c++) {
		verdict_find(limits, &view->cpu[c], finding);
		for (i = 0; i < FINDINGS; i++) {
			if (verdict_within(&finding[i]))
				continue;
			fprintf(to, "%sCPU %u: %s %.6g %s, limit %.6g\n", passed ? "\n" : "",
				view->cpu[c].cpu, finding[i].what, finding[i].value,
				finding[i].unit, finding[i].limit);
			passed = false;
		}
	}
	fprintf(to, "%sverdict%s%s: %s\n", passed ? "\n" : "", limits->profile ? " " : "",
		limits->profile ? limits->profile : "", passed ? "passed" : "FAILED");
	return passed;
}

json_t *noise_verdict_json(const struct noise_limits *limits, const struct noise_view *view,
			   bool *passed)
{
	struct finding finding[FINDINGS];
	json_t *list = json_array();
	u32 c, i;

	*passed = true;
	for (c = 0; c < view->capture->head.cpus; c++) {
		verdict_find(limits, &view->cpu[c], finding);
		for (i = 0; i < FINDINGS; i++) {
			if (finding[i].limit < 0)
				continue;
			*passed &= verdict_within(&finding[i]);
			json_array_append_new(list, json_pack("{si ss sf sf ss sb}", "cpu",
				(int)view->cpu[c].cpu, "what", finding[i].what, "limit",
				finding[i].limit, "value", finding[i].value, "unit",
				finding[i].unit, "passed", verdict_within(&finding[i])));
		}
	}
	return json_pack("{ss* sb so}", "profile", limits->profile, "passed", *passed, "limits",
			 list);
}
