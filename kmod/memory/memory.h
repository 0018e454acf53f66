/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of runs: pinned pages of the application, or scratch. */
#ifndef COLL_KMOD_MEMORY_H
#define COLL_KMOD_MEMORY_H

#include <linux/bvec.h>
#include <linux/kref.h>
#include <linux/mm_types.h>

/*
 * Whose locked memory it is. The limit is that of the process which opened the file,
 * also where the kernel thread allocates for it.
 */
struct kcoll_account {
	struct mm_struct *mm;
	struct task_struct *task;	/* its RLIMIT_MEMLOCK */
};

/* Pages that are addressed as one piece of `bytes` bytes; byte 0 is at `first` in page 0. */
struct kcoll_memory {
	struct kref ref;
	const struct kcoll_account *account;	/* outlives the buffer */
	u64 bytes;
	u32 first, count;
	bool user, writable;
	struct page **pages;
	void *address;			/* of byte 0, once mapped */
	void *mapping;			/* to be unmapped, or NULL */
};

/*
 * Adds `pages` to the locked memory, or takes them off (then it cannot fail). Called before
 * what it accounts for is allocated. CAP_IPC_LOCK, which has no limit, is that of the
 * current credentials: the thread has those of the opener.
 */
int kcoll_memory_account(const struct kcoll_account *account, u64 pages, bool more);

/* Pins the caller's pages. May sleep. */
struct kcoll_memory *kcoll_memory_pin(const struct kcoll_account *account, u64 address,
				      u64 bytes, bool writable);
/* Zeroed pages of the module, mapped. */
struct kcoll_memory *kcoll_memory_make(const struct kcoll_account *account, u64 bytes);
/* Drops a reference; NULL is fine. */
void kcoll_memory_put(struct kcoll_memory *buffer);

/* Maps the buffer at `address`, unless it is mapped. Needed only to reduce. */
int kcoll_memory_map(struct kcoll_memory *buffer);

/*
 * The pieces of [offset, offset + *bytes), at most `max` of them. Returns their
 * number; *bytes becomes what they hold.
 */
int kcoll_memory_bvecs(const struct kcoll_memory *buffer, u64 offset, u64 *bytes,
		       struct bio_vec *bvec, int max);
/* Copies page by page; the buffer need not be mapped. */
void kcoll_memory_write(const struct kcoll_memory *buffer, u64 offset, const u8 *from, u64 bytes);

#endif
