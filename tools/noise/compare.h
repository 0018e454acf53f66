/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Compares two captures: what changed, and which changes are significant. */
#ifndef COLL_NOISE_COMPARE_H
#define COLL_NOISE_COMPARE_H

#include "view.h"

void noise_compare_print(const struct noise_view *before, const struct noise_view *after, FILE *to);
json_t *noise_compare_json(const struct noise_view *before, const struct noise_view *after);

#endif
