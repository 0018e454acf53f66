/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Private to the io_uring engine. uring.c calls uring_socket.c and uring_watch.c, and these
 * call uring_queue.c; completions come up through complete().
 */
#ifndef COLL_URING_H
#define COLL_URING_H

#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "engine.h"

enum {
	URING_BUFFER_BYTES = 8192,
	/* A cancelled receive ends at once. This limit only keeps it from hanging. */
	URING_PAUSE_MAX_NS = 100000000,
};

/* The kind of a completion: the low bits of user_data, beside the owner's address. */
enum coll_uring_tag {
	TAG_NONE,
	TAG_SEND,
	TAG_RECV,
	TAG_WATCH,
	TAG_BELL,
	TAG_MASK = 7,
};

/* A poll in the kernel. It outlives its watch if that is withdrawn. */
struct coll_uring_watched {
	struct coll_watch *watch;		/* NULL: withdrawn */
	bool stopped;			/* by let_go() */
	int events;
	struct coll_uring_watched *next, **slot;	/* all polls, to be freed at the end */
};

/* A futex that is waited for in the kernel, or was. It outlives its bell if that is withdrawn. */
struct coll_uring_bell {
	struct coll_bell *bell;			/* NULL: withdrawn */
	bool armed;
	struct coll_uring_bell *next, **slot;	/* all bells, to be freed at the end */
};

struct coll_uring_socket {
	struct coll_socket *socket;
	int file;			/* index in the ring's table, or -1 */
	bool quiet;			/* nothing waits for the send in flight */
	int parts;			/* of the receive in flight; 0: to any buffer */
	bool whole;			/* all bytes are sure to come */
	bool detaching;
	int send_flags;
	uint8_t *buffer;		/* NULL where the kernel has buffer rings */
	struct msghdr send, recv;
	struct iovec send_iov[COLL_SEND_IOV_MAX], recv_iov[COLL_RECV_IOV_MAX];
};

struct coll_uring {
	struct io_uring ring;
	/* Hands a completion to the socket or watch that it is of. */
	void (*complete)(struct coll_engine *engine, const struct io_uring_cqe *cqe);
	struct io_uring_buf_ring *buffers;
	uint8_t *memory;		/* of the buffers */
	bool *file_used;		/* NULL: no table of files */
	uint32_t quiet_sends;		/* in flight */
	bool quiet_stuck;		/* a full socket keeps some: no wait counts on any until all ended */
	uint32_t others;		/* other sends and receives in flight */
	struct coll_uring_socket *polled;	/* its receive is not in the ring yet; or NULL */
	uint8_t stage[URING_BUFFER_BYTES];	/* for small messages of that socket */
	pthread_t thread;		/* the only one that may use the ring */
	struct coll_uring_watched *polls;
	struct coll_uring_watched *spare_polls;	/* of watches that have fired */
	struct coll_uring_bell *bells;
	uint32_t bells_armed;
	bool hears;			/* the kernel has the op */
	int fd, event_fd;		/* for coll_fd(); -1: not in use */
	bool letting_go;		/* requests that end continue on another thread */
};

static inline struct coll_uring *coll_uring_of(const struct coll_engine *engine)
{
	return engine->state;
}

/* ---- uring_queue.c ----------------------------------------------------- */

/* Hands the submission queue over. One system call. */
void coll_uring_submit(struct coll_engine *engine);
/* Whether so many entries are free; a full queue is handed over first. */
bool coll_uring_has_capacity(struct coll_engine *engine, unsigned int entries);
/* The next entry. coll_uring_has_capacity() was true. */
struct io_uring_sqe *coll_uring_sqe(struct coll_engine *engine);
/* Sets the owner of the completion, after the preparation, which clears it. */
void coll_uring_sqe_owner(struct io_uring_sqe *sqe, const void *owner, enum coll_uring_tag tag);
/* Asks for the end of that owner's request. Without room for it, the request ends with the ring. */
void coll_uring_cancel(struct coll_engine *engine, const void *owner, enum coll_uring_tag tag);
/*
 * Ends that owner's request at once, with the bytes that have moved. -ENOENT: it has none; -EALREADY, -EINTR: its end
 * comes.
 */
int coll_uring_cancel_now(struct coll_uring *uring, const void *owner, enum coll_uring_tag tag);
/* Handles all completions that are there. */
void coll_uring_reap(struct coll_engine *engine);

/* ---- uring_socket.c: sockets' sends and receives ----------------------- */

/* The buffers for small messages; where the kernel has none, sockets have their own. */
void coll_uring_open_buffers(struct coll_uring *uring);
void coll_uring_close_buffers(struct coll_uring *uring);
int coll_uring_attach(struct coll_socket *socket);
void coll_uring_detach(struct coll_socket *socket);
int coll_uring_pause(struct coll_socket *socket);
void coll_uring_resume(struct coll_socket *socket);
/*
 * Submits the work of touched sockets. If only one has work and the caller polls (`polls`),
 * it goes straight to that socket.
 */
void coll_uring_submit_touched(struct coll_engine *engine, bool polls);
/* Submits the receive of the polled socket: the caller may sleep. */
void coll_uring_submit_polled(struct coll_engine *engine);
/* Receives from the polled socket. Whether bytes came. */
bool coll_uring_poll_socket(struct coll_engine *engine);
void coll_uring_send_complete(struct coll_engine *engine, struct coll_uring_socket *own,
			      int result);
void coll_uring_recv_complete(struct coll_engine *engine, struct coll_uring_socket *own, int result,
			      unsigned int flags);

/* ---- uring_watch.c: descriptors that somebody waits for ---------------- */

int coll_uring_watch(struct coll_engine *engine, struct coll_watch *watch, int events);
void coll_uring_unwatch(struct coll_engine *engine, struct coll_watch *watch);
void coll_uring_watch_complete(struct coll_engine *engine, struct coll_uring_watched *own,
			       int result);
/* Submits a cancelled poll again. */
void coll_uring_watch_again(struct coll_engine *engine, struct coll_uring_watched *own);
/* Frees withdrawn polls that the ring never reported. */
void coll_uring_watches_free(struct coll_uring *uring);

/* ---- uring_bell.c: words in memory that somebody waits for ------------- */

void coll_uring_open_bells(struct coll_uring *uring);
bool coll_uring_hear(struct coll_engine *engine, struct coll_bell *bell);
void coll_uring_unhear(struct coll_engine *engine, struct coll_bell *bell);
void coll_uring_bell_complete(struct coll_engine *engine, struct coll_uring_bell *own, int result);
/* Frees bells that were withdrawn and whose end the ring never reported, after the ring. */
void coll_uring_bells_free(struct coll_uring *uring);

#endif
