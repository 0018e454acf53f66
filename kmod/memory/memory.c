// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of runs: pages of the application, pinned so that changes of its address
 * space do not move them, or pages of the module. All of it counts against
 * RLIMIT_MEMLOCK.
 */
#include <linux/bvec.h>
#include <linux/capability.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kmod/common/compat.h"
#include "kmod/common/subsystem.h"
#include "memory.h"
#include "uapi/coll_schedule.h"

enum { PIN_AT_ONCE = 4096 };	/* pages; a fatal signal is noticed in between */

int kcoll_memory_account(const struct kcoll_account *account, u64 pages, bool more)
{
	int error;

	if (!pages)
		return 0;
	if (pages > LONG_MAX >> PAGE_SHIFT)
		return -ENOMEM;
	mmap_write_lock(account->mm);
	error = __account_locked_vm(account->mm, pages, more, account->task,
				    more && capable(CAP_IPC_LOCK));
	mmap_write_unlock(account->mm);
	return error;
}

static u64 memory_accounted(const struct kcoll_memory *buffer)
{
	return buffer->count + DIV_ROUND_UP((u64)buffer->count * sizeof(*buffer->pages), PAGE_SIZE);
}

static struct kcoll_memory *memory_alloc(const struct kcoll_account *account, u64 bytes, u32 first)
{
	struct kcoll_memory *buffer;
	u64 count = DIV_ROUND_UP(first + bytes, PAGE_SIZE);

	if (bytes > COLL_BYTES_MAX || count > INT_MAX)
		return ERR_PTR(-E2BIG);
	buffer = kzalloc(sizeof(*buffer), COLL_GFP);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	kref_init(&buffer->ref);
	buffer->account = account;
	buffer->bytes = bytes;
	buffer->first = first;
	buffer->count = count;
	if (kcoll_memory_account(account, memory_accounted(buffer), true))
		goto err_free;
	buffer->pages = kvcalloc(count ?: 1, sizeof(*buffer->pages), COLL_GFP);
	if (!buffer->pages)
		goto err_account;
	return buffer;

err_account:
	kcoll_memory_account(account, memory_accounted(buffer), false);
err_free:
	kfree(buffer);
	return ERR_PTR(-ENOMEM);
}

static void memory_release(struct kref *ref)
{
	struct kcoll_memory *buffer = container_of(ref, struct kcoll_memory, ref);

	if (buffer->user) {
		if (buffer->mapping)
			vunmap(buffer->mapping);
		unpin_user_pages_dirty_lock(buffer->pages, buffer->count, buffer->writable);
	} else {
		vfree(buffer->mapping);
	}
	kcoll_memory_account(buffer->account, memory_accounted(buffer), false);
	kvfree(buffer->pages);
	kfree(buffer);
}

void kcoll_memory_put(struct kcoll_memory *buffer)
{
	if (buffer)
		kref_put(&buffer->ref, memory_release);
}

/* How many were pinned, or an error. A shared file that is mapped to be read is never copied. */
static int memory_pin_some(struct kcoll_memory *buffer, u64 start, int want, struct page **pages)
{
	const unsigned int flags =
		FOLL_LONGTERM | (buffer->writable ? FOLL_WRITE : COLL_PIN_TO_READ);
	const int got = pin_user_pages_fast(start, want, flags, pages);

	if (got != -EFAULT || buffer->writable || !COLL_PIN_TO_READ)
		return got;
	return pin_user_pages_fast(start, want, FOLL_LONGTERM, pages);
}

/* On an error, *pinned pages are pinned. */
static int memory_pin_pages(struct kcoll_memory *buffer, u64 start, u32 *pinned)
{
	for (*pinned = 0; *pinned < buffer->count;) {
		int want = min_t(u32, buffer->count - *pinned, PIN_AT_ONCE);
		int got = memory_pin_some(buffer, start + ((u64)*pinned << PAGE_SHIFT), want,
					  buffer->pages + *pinned);

		if (got <= 0)
			return got ?: -EFAULT;
		*pinned += got;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

struct kcoll_memory *kcoll_memory_pin(const struct kcoll_account *account, u64 address,
				      u64 bytes, bool writable)
{
	struct kcoll_memory *buffer;
	u32 pinned;
	int error;

	if (bytes && !access_ok((void __user *)(unsigned long)address, bytes))
		return ERR_PTR(-EFAULT);
	buffer = memory_alloc(account, bytes, bytes ? offset_in_page(address) : 0);
	if (IS_ERR(buffer))
		return buffer;
	buffer->user = true;
	buffer->writable = writable;
	error = memory_pin_pages(buffer, address & PAGE_MASK, &pinned);
	if (error) {
		unpin_user_pages(buffer->pages, pinned);
		kcoll_memory_account(account, memory_accounted(buffer), false);
		kvfree(buffer->pages);
		kfree(buffer);
		return ERR_PTR(error);
	}
	return buffer;
}

struct kcoll_memory *kcoll_memory_make(const struct kcoll_account *account, u64 bytes)
{
	struct kcoll_memory *buffer = memory_alloc(account, bytes, 0);
	u32 i;

	if (IS_ERR(buffer) || !bytes)
		return buffer;
	buffer->mapping = __vmalloc(bytes, COLL_GFP | __GFP_ZERO);
	if (!buffer->mapping) {
		kcoll_memory_put(buffer);
		return ERR_PTR(-ENOMEM);
	}
	buffer->address = buffer->mapping;
	buffer->writable = true;
	for (i = 0; i < buffer->count; i++)
		buffer->pages[i] = vmalloc_to_page(buffer->mapping + ((u64)i << PAGE_SHIFT));
	return buffer;
}

int kcoll_memory_map(struct kcoll_memory *buffer)
{
	if (buffer->address || !buffer->bytes)
		return 0;
	if (buffer->count == 1 && !PageHighMem(buffer->pages[0])) {
		buffer->address = page_address(buffer->pages[0]) + buffer->first;
		return 0;
	}
	buffer->mapping = vmap(buffer->pages, buffer->count, VM_MAP,
			       buffer->writable ? PAGE_KERNEL : PAGE_KERNEL_RO);
	if (!buffer->mapping)
		return -ENOMEM;
	buffer->address = buffer->mapping + buffer->first;
	return 0;
}

int kcoll_memory_bvecs(const struct kcoll_memory *buffer, u64 offset, u64 *bytes,
		       struct bio_vec *bvec, int max)
{
	u64 at = buffer->first + offset, left = *bytes;
	int i;

	for (i = 0; i < max && left; i++) {
		u32 in_page = offset_in_page(at);
		u32 part = min_t(u64, left, PAGE_SIZE - in_page);

		bvec[i].bv_page = buffer->pages[at >> PAGE_SHIFT];
		bvec[i].bv_offset = in_page;
		bvec[i].bv_len = part;
		at += part;
		left -= part;
	}
	*bytes -= left;
	return i;
}

void kcoll_memory_write(const struct kcoll_memory *buffer, u64 offset, const u8 *from, u64 bytes)
{
	struct bio_vec piece;

	while (bytes) {
		u64 part = bytes;

		kcoll_memory_bvecs(buffer, offset, &part, &piece, 1);
		memcpy_to_page(piece.bv_page, piece.bv_offset, from, part);
		from += part;
		offset += part;
		bytes -= part;
	}
}
