/* SPDX-License-Identifier: GPL-2.0 */
/* Open files of each user: each has a thread, which RLIMIT_NPROC counts from 6.10 on only. */
#ifndef COLL_KMOD_USER_H
#define COLL_KMOD_USER_H

struct kcoll_user;

/*
 * Counts a file of the calling user, until kcoll_user_put(). -EMFILE: there are as many as
 * the parameter files_per_user says, and the process has no CAP_SYS_RESOURCE. In a user namespace
 * that a user made, all are that one's.
 */
struct kcoll_user *kcoll_user_get(void);
void kcoll_user_put(struct kcoll_user *user);

#endif
