// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "switch.h"

extern const struct switch_ops switch_fake, switch_emul, switch_scpi, switch_restconf;

const struct switch_ops *const switch_drivers[] = {
	&switch_fake, &switch_emul, &switch_scpi, &switch_restconf, NULL,
};

const struct switch_ops *switch_find(const char *name)
{
	u32 i;

	for (i = 0; switch_drivers[i]; i++)
		if (!strcmp(switch_drivers[i]->name, name))
			return switch_drivers[i];
	return NULL;
}
