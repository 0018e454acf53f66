/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A trace's lines and the values in them. Private to replay_read.c and replay_text.c. */
#ifndef COLL_SIM_REPLAY_TEXT_H
#define COLL_SIM_REPLAY_TEXT_H

#include "replay_program.h"

enum replay_key {
	KEY_VERSION, KEY_RANK, KEY_RANKS, KEY_NUMBER, KEY_ID, KEY_GROUP, KEY_TO, KEY_FROM,
	KEY_TAG, KEY_BYTES, KEY_REQUEST, KEY_REQUESTS, KEY_ROOT, KEY_SEND, KEY_RECV,
	KEY_ELEMENT, KEY_COMMUTATIVE, KEY_NS, KEYS,
};

struct replay_reader {
	struct sim_replay *replay;
	struct replay_rank *rank;
	u32 number, line;
	bool ended;
	char *value[KEYS];		/* of this line */
	/* Requests so far, ascending, with the events that began them. */
	u64 *request;
	u32 *begun;
	u32 requests, request_capacity, begun_capacity;
	char *why;
	size_t why_bytes;
};

#define replay_line_wrong(r, ...) \
	replay_wrong((r)->why, (r)->why_bytes, (r)->rank, (r)->line, __VA_ARGS__)

int replay_no_memory(struct replay_reader *r);

/* Splits a line into its word and the values of the known keys. */
char *replay_cut_line(struct replay_reader *r, char *line);

int replay_value(struct replay_reader *r, enum replay_key key, s64 least, u64 most, u64 *number);

/* The same, or `otherwise` if the key is missing. */
int replay_value_or(struct replay_reader *r, enum replay_key key, u64 most, u64 otherwise,
		    u64 *number);

/* Appends numbers separated by commas to the rank's list. */
int replay_value_list(struct replay_reader *r, enum replay_key key, u64 most, u32 *first,
		      u32 *count);

#endif
