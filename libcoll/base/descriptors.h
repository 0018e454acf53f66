/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DESCRIPTORS_H
#define COLL_DESCRIPTORS_H

#include <stdbool.h>

/*
 * After EMFILE: raises the soft limit of file descriptors to the hard one. True: it was lower, so
 * trying again helps. Only where connections need it: select() cannot take descriptors from
 * FD_SETSIZE on, and children inherit the limit.
 */
bool coll_descriptors_raise(void);

#endif
