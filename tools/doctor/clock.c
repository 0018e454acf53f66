// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Verdicts on clocks. */
#include <string.h>

#include "check.h"

#define SLOW_CALL_NS 150.0	/* a call into the kernel, or an access to a device */

static bool clock_is_slow(const char *source)
{
	return strstr("hpet acpi_pm jiffies refined-jiffies", source);
}

static void judge_clock(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_clock_facts *c = &facts->clock;
	const double ns = facts->probe.clock_ns;
	const bool slow = clock_is_slow(c->source) || ns > SLOW_CALL_NS;

	if (!*c->source) {
		doctor_find(finding, DOCTOR_UNKNOWN, "the kernel names no clock source");
		return;
	}
	doctor_find(finding, slow ? DOCTOR_SLOW : DOCTOR_OK, "%s", c->source);
	if (ns > 0)
		doctor_cost(finding, "reading it takes %.0f ns here, and 16 to 18 with a TSC; a "
			    "waiting rank reads it at each poll", ns);
	if (slow && strstr(c->available, "tsc"))
		doctor_advise(finding, "echo tsc >/sys/devices/system/clocksource/clocksource0/"
				       "current_clocksource, if the kernel's log does not call it "
				       "unstable");
}

static void judge_time(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_clock_facts *c = &facts->clock;

	if (c->error_us < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "adjtimex(2) is not allowed here");
	else if (!c->synchronized)
		doctor_find(finding, DOCTOR_NOTE, "nothing keeps this clock right");
	else
		doctor_find(finding, DOCTOR_OK, "kept right, within %.1f ms",
			    c->error_us / 1e3);
}

const struct doctor_check doctor_clock_checks[] = {
	{ "clock", "the clock source; a probe of clock_gettime(2)", judge_clock,
	  "each reading of the time is a system call or an access to a device",
	  "find out why the kernel rejects the TSC: dmesg | grep -i clocksource",
	  "The library and collnoise read CLOCK_MONOTONIC often. tsc, kvm-clock, hyperv_clocksource "
	  "and arch_sys_counter are read without a system call.", false },
	{ "time", "adjtimex(2)", judge_time,
	  "no call depends on it; captures of noise and logs of several nodes do not line up, and "
	  "phase=same injects at different times",
	  "run chronyd, ntpd or systemd-timesyncd; for microseconds ptp4l and phc2sys",
	  "Deadlines use CLOCK_MONOTONIC of their own node, so the library does not care. With "
	  "--hosts the offset between nodes is measured.", true },
	{ NULL },
};
