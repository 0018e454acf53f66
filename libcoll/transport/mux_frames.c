// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The frames of a mux that are being sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "mux_parts.h"

uint64_t coll_mux_iov_clip(struct iovec *iov, int *count, uint64_t max)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < *count && bytes < max; i++) {
		if (iov[i].iov_len > max - bytes)
			iov[i].iov_len = max - bytes;
		bytes += iov[i].iov_len;
	}
	*count = i;
	return bytes;
}

int coll_mux_send_error(const struct coll_mux *mux)
{
	return coll_is_our_lack(mux->error) ? mux->error : -EPIPE;
}

void coll_mux_fail_frames(struct coll_mux *mux)
{
	for (; mux->frames_reported < mux->frames; mux->frames_reported++) {
		struct coll_channel *channel = mux->frame[mux->frames_reported].channel;

		if (channel && channel->link)
			channel->link->socket.ops->sent(&channel->link->socket,
							coll_mux_send_error(mux));
	}
	mux->iovs_sent = mux->iovs;
}

struct coll_mux_frame *coll_mux_frame_of(struct coll_mux *mux, const struct coll_channel *channel)
{
	int i;

	for (i = mux->frames_reported; i < mux->frames; i++)
		if (mux->frame[i].channel == channel)
			return &mux->frame[i];
	return NULL;
}

int coll_mux_frame_copy(struct coll_mux *mux, struct coll_mux_frame *frame)
{
	int i;

	frame->channel = NULL;
	for (i = frame->entry + 1; i < frame->entry + frame->entries; i++) {
		struct iovec *iov = &mux->iov[i];

		if (i < mux->iovs_sent)
			continue;
		mux->copy[i] = malloc(iov->iov_len);
		if (!mux->copy[i])
			return -ENOMEM;
		memcpy(mux->copy[i], iov->iov_base, iov->iov_len);
		iov->iov_base = mux->copy[i];
	}
	return 0;
}
