/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Private to the files mux*.c. */
#ifndef COLL_MUX_PARTS_H
#define COLL_MUX_PARTS_H

#include "mux.h"

/* A socket is the first member of its mux. */
static inline struct coll_mux *coll_mux_of(struct coll_socket *socket)
{
	return (struct coll_mux *)socket;
}

/* Between these two no channel is freed. */
static inline void coll_mux_enter(struct coll_mux *mux)
{
	mux->users++;
}
void coll_mux_leave(struct coll_mux *mux);

/* ---- mux_channels.c -------------------------------------------------------- */

/* Serves all touched channels. Their links may touch others. */
void coll_mux_serve_touched(struct coll_mux *mux);
void coll_mux_touch_all(struct coll_mux *mux);
/* The first that has bytes to send; messages that do not wait for bulk go first. Or NULL. */
struct coll_channel *coll_mux_next_sender(struct coll_mux *mux);
void coll_mux_senders_remove(struct coll_mux *mux, struct coll_channel *channel);
bool coll_mux_has_receiver(struct coll_mux *mux);
/* The one whose link wants to receive; NULL: none, or several. */
struct coll_channel *coll_mux_only_receiver(struct coll_mux *mux);
/* Takes the channel off all lists; it is freed when no caller uses it. */
void coll_mux_unlink(struct coll_mux *mux, struct coll_channel *channel);

/* ---- mux_frames.c ---------------------------------------------------------- */

/* No more is sent: the links of frames that are under way get an answer. */
void coll_mux_fail_frames(struct coll_mux *mux);
/* The unreported frame of this channel, or NULL. */
struct coll_mux_frame *coll_mux_frame_of(struct coll_mux *mux, const struct coll_channel *channel);
/* Copies what the frame still has to send, so its link has its memory back. -ENOMEM. */
int coll_mux_frame_copy(struct coll_mux *mux, struct coll_mux_frame *frame);
/* At most so many bytes of these entries; returns how many they have. */
uint64_t coll_mux_iov_clip(struct iovec *iov, int *count, uint64_t max);

/* ---- for the engine: struct coll_socket_ops ---------------------------------- */

bool coll_mux_wants_send(struct coll_socket *socket);
int coll_mux_send_iov(struct coll_socket *socket, struct iovec *iov, int max);
bool coll_mux_sends_quietly(const struct coll_socket *socket);
void coll_mux_sent(struct coll_socket *socket, ssize_t result);
bool coll_mux_wants_recv(const struct coll_socket *socket);
int coll_mux_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole);
void coll_mux_received(struct coll_socket *socket, ssize_t result);
void coll_mux_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result);
void coll_mux_received_none(struct coll_socket *socket);

#endif
