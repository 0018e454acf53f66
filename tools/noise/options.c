// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "core/noise/text.h"
#include "options.h"

bool noise_option_time(const char *command, const char *what, const char *text, u64 unit, u64 least,
		 u64 most, u64 *ns)
{
	char low[24], high[24], valid[128];

	if (coll_text_time(text, unit, ns) && *ns >= least && *ns <= most)
		return true;
	snprintf(valid, sizeof(valid), "a time from %s to %s: 250ns, 5us, 2.5ms, 10s, 1m, 1h%s",
		 noise_time_text(least, low), noise_time_text(most, high),
		 unit == NOISE_S ? "; s without a unit" : "; us without a unit");
	return argument_refuse(command, what, text, valid);
}

bool noise_option_cpus(const char *command, const char *what, const char *text, struct noise_cpus *cpus)
{
	struct noise_cpus online, missing;
	char list[256], valid[320];

	if (!noise_cpus_file(&online, "/sys/devices/system/cpu/online"))
		noise_cpus_affinity(0, &online);
	if (noise_cpus_read_list(cpus, text) && noise_cpus_count(cpus)) {
		missing = *cpus;
		noise_cpus_remove(&missing, &online);
		if (!noise_cpus_count(&missing))
			return true;
	}
	snprintf(valid, sizeof(valid), "a list like 0,2-3, of the CPUs %s",
		 noise_cpus_list(&online, list, sizeof(list)));
	return argument_refuse(command, what, text, valid);
}

bool noise_option_share(const char *command, const char *what, const char *text, double *share)
{
	return noise_share_read(text, share) ||
	       argument_refuse(command, what, text, "a share of the time: 2.5%, or 0.025");
}

bool noise_option_real(const char *command, const char *what, const char *text, double least, double most,
		 double *value)
{
	char *rest, valid[80];

	*value = strtod(text, &rest);
	if (rest != text && !*rest && *value >= least && *value <= most)
		return true;
	snprintf(valid, sizeof(valid), "a number from %g to %g", least, most);
	return argument_refuse(command, what, text, valid);
}

bool noise_option_policy(const char *command, const char *what, const char *text,
		   struct noise_policy *policy)
{
	return noise_policy_read(policy, text) ||
	       argument_refuse(command, what, text,
		     "o:NICE, r:PRIORITY, f:PRIORITY (1 to 99) or d:RUNTIME:PERIOD (us)");
}

bool noise_option_no_more(const char *command, int argc, char **argv)
{
	if (optind >= argc)
		return true;
	fprintf(stderr, "%s %s: '%s' is one argument too many; --help tells more\n",
		argument_program, command, argv[optind]);
	return false;
}
