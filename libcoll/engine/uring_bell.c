// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Bells, as futexes that io_uring waits for (since Linux 6.7): a thread that sleeps in the ring
 * wakes for them as for its sockets. Who rings pays one system call, and the sleeper none besides
 * the enter that it sleeps in: no byte is to be read, no poll to be armed before the next sleep.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/port.h"
#include "uring.h"

/* Of <linux/io_uring.h> and <linux/futex.h>, which may be older than the kernel. */
enum {
	OP_FUTEX_WAIT = 51,
	FUTEX_OF_32_BITS = 2,
};

static const uint64_t any_wake = UINT32_MAX;

void coll_uring_open_bells(struct coll_uring *uring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&uring->ring);

	uring->hears = probe && io_uring_opcode_supported(probe, OP_FUTEX_WAIT);
	io_uring_free_probe(probe);
}

void coll_uring_bells_free(struct coll_uring *uring)
{
	while (uring->bells) {
		struct coll_uring_bell *own = uring->bells;

		uring->bells = own->next;
		free(own);
	}
}

static struct coll_uring_bell *bell_own(struct coll_uring *uring, struct coll_bell *bell)
{
	struct coll_uring_bell *own = bell->own ? bell->own : calloc(1, sizeof(*own));

	if (bell->own || !own)
		return own;
	own->bell = bell;
	own->slot = &uring->bells;
	own->next = uring->bells;
	if (own->next)
		own->next->slot = &own->next;
	uring->bells = own;
	return bell->own = own;
}

static void bell_forget(struct coll_uring_bell *own)
{
	*own->slot = own->next;
	if (own->next)
		own->next->slot = own->slot;
	free(own);
}

/* Its value is read here, before the caller says that it sleeps: ring.h says why. */
static void futex_wait(struct io_uring_sqe *sqe, const uint32_t *word)
{
	io_uring_prep_rw(OP_FUTEX_WAIT, sqe, FUTEX_OF_32_BITS, word, 0,
			 __atomic_load_n(word, __ATOMIC_SEQ_CST));
	sqe->addr3 = any_wake;
}

bool coll_uring_hear(struct coll_engine *engine, struct coll_bell *bell)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct coll_uring_bell *own;
	struct io_uring_sqe *sqe;

	if (!uring->hears)
		return false;
	own = bell_own(uring, bell);
	if (!own || own->armed)
		return own;
	if (!coll_uring_has_capacity(engine, 1))
		return false;
	sqe = coll_uring_sqe(engine);
	futex_wait(sqe, bell->word);
	coll_uring_sqe_owner(sqe, own, TAG_BELL);
	own->armed = true;
	uring->bells_armed++;
	return true;
}

/* A wait that failed ended the sleep: before the next one sockets are asked for a byte. */
void coll_uring_bell_complete(struct coll_engine *engine, struct coll_uring_bell *own, int result)
{
	struct coll_uring *uring = coll_uring_of(engine);

	own->armed = false;
	uring->bells_armed--;
	if (!own->bell)
		bell_forget(own);
	else if (result < 0 && result != -EAGAIN && result != -EINTR && result != -ECANCELED)
		uring->hears = false;
}

void coll_uring_unhear(struct coll_engine *engine, struct coll_bell *bell)
{
	struct coll_uring_bell *own = bell->own;

	bell->own = NULL;
	if (!own)
		return;
	own->bell = NULL;
	if (!own->armed) {
		bell_forget(own);
		return;
	}
	coll_uring_cancel(engine, own, TAG_BELL);
}
