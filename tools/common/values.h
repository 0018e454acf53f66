/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The text of --help about an option's values. */
#ifndef COLL_VALUES_H
#define COLL_VALUES_H

#include "options.h"

/* "(1 to 64; default 8)", or "" if there is nothing to state; returns `text`. */
const char *option_range(const struct option_entry *option, char *text, size_t bytes);

#endif
