/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Whom limits take a user for. One to whom /etc/subuid gives a range of user numbers can be as many users as it likes:
 * all numbers of a range count as one user. So a user has its own share of what there is, and that of its range.
 */
#ifndef COLL_DAEMON_SUBUID_H
#define COLL_DAEMON_SUBUID_H

#include <sys/types.h>

#define COLLD_SUBUID "/etc/subuid"

/* Reads the file, if it is another one than last time; costs a stat() if not. Without a file each number is a user. */
void colld_subuid_read(const char *path);
/* The first number of the user's range, or the user; never root for another. It changes when the file is read. */
uid_t colld_subuid_counts_as(uid_t user);

#endif
