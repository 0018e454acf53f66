/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Why coll_open() failed, in words; each thread has its own. */
#ifndef COLL_OPEN_ERROR_H
#define COLL_OPEN_ERROR_H

/* Keeps the reason for this thread; returns the error. */
int coll_open_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The reason that this thread keeps; "" at first. Never NULL. */
const char *coll_open_error(void);

#endif
