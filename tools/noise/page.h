/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A capture's report as one page that needs no other file. */
#ifndef COLL_NOISE_PAGE_H
#define COLL_NOISE_PAGE_H

#include "assessment.h"

/* Errors are reported on stderr. 0 or -errno. */
int noise_page(const char *command, const struct noise_assessment *assessment, const char *path);

#endif
