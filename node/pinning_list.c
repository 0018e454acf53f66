// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The list of what is pinned, and a hash table that finds it by its number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pinning.h"

/* ---- the table -------------------------------------------------------------- */

/* Twice as many slots as pins at least, a power of two; the next free slot takes what collides. */
static u32 *list_slot(const struct node_pinning *pinning, u32 number)
{
	return &pinning->slot[number * 2654435761u & (pinning->slots - 1)];
}

static u32 *list_next_slot(const struct node_pinning *pinning, u32 *slot)
{
	return slot + 1 == pinning->slot + pinning->slots ? pinning->slot : slot + 1;
}

static void list_enter(struct node_pinning *pinning, u32 which)
{
	u32 *slot = list_slot(pinning, pinning->pin[which].number);

	while (*slot)
		slot = list_next_slot(pinning, slot);
	*slot = which + 1;
}

/* Anew, for so many. */
static int list_index(struct node_pinning *pinning, u32 room)
{
	u32 slots = 128, i, *more;

	while (slots < 2 * room)
		slots *= 2;
	more = calloc(slots, sizeof(*more));
	if (!more)
		return -ENOMEM;		/* the old one still has all */
	free(pinning->slot);
	pinning->slot = more;
	pinning->slots = slots;
	for (i = 0; i < pinning->count; i++)
		list_enter(pinning, i);
	return 0;
}

static bool list_is_same(const struct node_pin *pin, const struct node_pin *like)
{
	return pin->kind == like->kind && pin->number == like->number &&
	       (!like->born || pin->born == like->born) &&
	       (pin->kind != NODE_PIN_FILE || !strcmp(pin->name, like->name));
}

struct node_pin *node_pinning_find(const struct node_pinning *pinning, const struct node_pin *like)
{
	u32 *slot = pinning->slots ? list_slot(pinning, like->number) : NULL;

	for (; slot && *slot; slot = list_next_slot(pinning, slot))
		if (list_is_same(&pinning->pin[*slot - 1], like))
			return &pinning->pin[*slot - 1];
	return NULL;
}

/* ---- the list ---------------------------------------------------------------- */

static int list_grow(struct node_pinning *pinning)
{
	const u32 room = pinning->room ? 2 * pinning->room : 64;
	struct node_pin *more = reallocarray(pinning->pin, room, sizeof(*more));

	if (!more)
		return -ENOMEM;
	pinning->pin = more;
	pinning->room = room;
	return 0;
}

struct node_pin *node_pinning_add(struct node_pinning *pinning, const struct node_pin *pin,
				  const char *before, const char *after)
{
	struct node_pin *to;

	if ((pinning->count == pinning->room && list_grow(pinning)) ||
	    (pinning->slots < 2 * pinning->room && list_index(pinning, pinning->room)))
		return NULL;
	to = &pinning->pin[pinning->count];
	*to = *pin;
	to->seen = pinning->round;
	to->before = strdup(before);
	to->after = strdup(after);
	if (to->before && to->after) {
		list_enter(pinning, pinning->count++);
		return to;
	}
	free(to->before);
	free(to->after);
	return NULL;
}

u32 node_pinning_drop(struct node_pinning *pinning,
		      bool (*gone)(const struct node_pin *pin, const void *data), const void *data)
{
	const u32 before = pinning->count;
	u32 i, kept = 0;

	for (i = 0; i < before; i++) {
		if (!gone(&pinning->pin[i], data)) {
			pinning->pin[kept++] = pinning->pin[i];
			continue;
		}
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	pinning->count = kept;
	if (kept < before) {
		memset(pinning->slot, 0, pinning->slots * sizeof(*pinning->slot));
		for (i = 0; i < kept; i++)
			list_enter(pinning, i);
	}
	return before - kept;
}

void node_pinning_free(struct node_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	free(pinning->pin);
	free(pinning->slot);
	node_scan_close(&pinning->scan);
	*pinning = (struct node_pinning){ .count = 0 };
}

u32 node_pinning_count(const struct node_pinning *pinning, enum node_pin_state state)
{
	u32 i, count = 0;

	for (i = 0; i < pinning->count; i++)
		count += pinning->pin[i].state == state;
	return count;
}
