/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_IN_PATH_H
#define COLL_IN_PATH_H

#include <stdbool.h>

/* Whether a program of this name is in a folder of PATH. */
bool in_path(const char *program);

#endif
