/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Sorting without allocation, recursion or libc. */
#ifndef COLL_SORT_H
#define COLL_SORT_H

#include "core/port.h"

struct coll_sort_item {
	u64 major, minor;
	u64 value;
};

static inline bool sort_before(const struct coll_sort_item *a, const struct coll_sort_item *b)
{
	return a->major != b->major ? a->major < b->major : a->minor < b->minor;
}

/* Heap sort, ascending. O(n log n); items that are equal come in any order. */
static inline void sort_items(struct coll_sort_item *item, u32 count)
{
	u32 start = count / 2, end = count, parent, child;

	while (end > 1) {
		struct coll_sort_item moved;

		if (start) {
			moved = item[--start];
		} else {
			moved = item[--end];
			item[end] = item[0];
		}
		for (parent = start; (child = 2 * parent + 1) < end; parent = child) {
			if (child + 1 < end && sort_before(&item[child], &item[child + 1]))
				child++;
			if (!sort_before(&moved, &item[child]))
				break;
			item[parent] = item[child];
		}
		item[parent] = moved;
	}
}

#endif
