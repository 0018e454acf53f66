/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion words, and commands over io_uring that wait for them. All with the
 * device's lock held, unless the comment says otherwise.
 */
#ifndef COLL_KMOD_WORD_H
#define COLL_KMOD_WORD_H

#include "kmod/exec/device.h"

struct io_uring_cmd;

/* A command in progress. */
struct kcoll_waiter {
	struct list_head node;		/* in device->waiters */
	struct io_uring_cmd *command;
	u32 word;
	int result;
	u64 execs;			/* when its submitter was first seen in exec(), ns; or 0 */
};

/* The word of a run that has completed; all that wait for it are completed. */
void kcoll_word_set(struct kcoll_device *device, u32 word, int status, u32 failed_rank,
		    u32 reporter);

/* Whether the word is set; its status may be read then. Without the lock. */
bool kcoll_word_done(const struct kcoll_device *device, u32 word);
/* Its status, as a command may return it. */
int kcoll_word_status(const struct kcoll_device *device, u32 word);

/* -EIOCBQUEUED: the command completes when the word is set. */
int kcoll_waiter_add(struct kcoll_device *device, struct io_uring_cmd *command, u32 word);
/* Before 6.7, each second while commands wait: those that an exec() waits for are completed. */
void kcoll_waiter_look(struct kcoll_device *device, u64 now);
/* Completes all commands that wait, with `status`. */
void kcoll_waiter_complete_all(struct kcoll_device *device, int status);
/* The ring or its task ends. Takes the lock; repeated until the command is complete. */
void kcoll_waiter_cancel(struct kcoll_device *device, struct io_uring_cmd *command,
			 unsigned int issue_flags);

#endif
