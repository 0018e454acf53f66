// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>

#include "options.h"

bool noise_option_cpus(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct node_cpus *cpus = option_field(option, settings), online, missing;
	char list[256], valid[320];

	if (!node_cpus_file(&online, "/sys/devices/system/cpu/online"))
		node_cpus_affinity(0, &online);
	if (node_cpus_read_list(cpus, text) && node_cpus_count(cpus)) {
		missing = *cpus;
		node_cpus_remove(&missing, &online);
		if (!node_cpus_count(&missing))
			return true;
	}
	snprintf(valid, sizeof(valid), "a list like 0,2-3, of the CPUs %s",
		 node_cpus_list(&online, list, sizeof(list)));
	return option_refuse(table, option, text, valid);
}

bool noise_option_share(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	return node_share_read(text, option_field(option, settings)) ||
	       option_refuse(table, option, text, "a share of the time: 2.5%, or 0.025");
}

bool noise_option_policy(const struct option_table *table, const struct option_entry *option,
			 void *settings, const char *text)
{
	return noise_policy_read(option_field(option, settings), text) ||
	       option_refuse(table, option, text,
			     "o:NICE, r:PRIORITY, f:PRIORITY (1 to 99) or d:RUNTIME:PERIOD (us)");
}
