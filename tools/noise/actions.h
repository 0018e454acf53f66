/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What to do when a threshold is passed, in rtla's syntax. */
#ifndef COLL_NOISE_ACTIONS_H
#define COLL_NOISE_ACTIONS_H

#include "tools/common/options.h"

enum { NOISE_ACTIONS = 8 };

struct noise_actions {
	const char *action[NOISE_ACTIONS];
	int count;
};

/* One more, of an option's value; false: refused, and reported on stderr. */
bool noise_actions_read(const struct option_table *table, const struct option_entry *option,
			struct noise_actions *actions, const char *text);
/* All of them, in order; failures are reported on stderr. */
void noise_actions_do(const struct noise_actions *actions, const char *command);

#endif
