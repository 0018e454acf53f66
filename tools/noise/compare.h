/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Two captures side by side: what changed, and what of it is more than chance. */
#ifndef COLL_NOISE_COMPARE_H
#define COLL_NOISE_COMPARE_H

#include "view.h"

void noise_compare_print(const struct noise_view *before, const struct noise_view *after, FILE *to);
json_t *noise_compare_json(const struct noise_view *before, const struct noise_view *after);

#endif
