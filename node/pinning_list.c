// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The list of what is pinned. */
#include <stdlib.h>
#include <string.h>

#include "pinning.h"

struct node_pin *node_pinning_add(struct node_pinning *pinning,
					   const struct node_pin *pin, const char *before,
					   const char *after)
{
	struct node_pin *to;

	if (pinning->count == pinning->room) {
		const u32 room = pinning->room ? 2 * pinning->room : 64;
		struct node_pin *more = reallocarray(pinning->pin, room, sizeof(*more));

		if (!more)
			return NULL;
		pinning->pin = more;
		pinning->room = room;
	}
	to = &pinning->pin[pinning->count];
	*to = *pin;
	to->before = strdup(before);
	to->after = strdup(after);
	if (to->before && to->after) {
		pinning->count++;
		return to;
	}
	free(to->before);
	free(to->after);
	return NULL;
}

void node_pinning_free(struct node_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	free(pinning->pin);
	*pinning = (struct node_pinning){ .count = 0 };
}

u32 node_pinning_count(const struct node_pinning *pinning, enum node_pin_state state)
{
	u32 i, count = 0;

	for (i = 0; i < pinning->count; i++)
		count += pinning->pin[i].state == state;
	return count;
}
