// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "reply.h"

static u64 bytes_used;

struct colld_reply *colld_reply_make(struct colld_answer *answer)
{
	struct colld_answer_header header[COLLD_ANSWER_HEADERS];
	const u32 count = colld_answer_headers(&answer->head, header);
	struct colld_reply *reply = answer->text ? malloc(sizeof(*reply)) : NULL;
	u32 i;

	if (reply)
		*reply = (struct colld_reply){ 1, answer->head.status, answer->head.bytes,
			MHD_create_response_from_buffer(answer->head.bytes, answer->text, MHD_RESPMEM_MUST_FREE) };
	if (!reply || !reply->response) {
		free(reply);
		colld_answer_free(answer);
		return NULL;
	}
	answer->text = NULL;
	for (i = 0; i < count; i++)
		MHD_add_response_header(reply->response, header[i].name, header[i].value);
	bytes_used += reply->bytes;
	return reply;
}

struct colld_reply *colld_reply_use(struct colld_reply *reply)
{
	reply->uses++;
	return reply;
}

void colld_reply_drop(struct colld_reply *reply)
{
	if (!reply || --reply->uses)
		return;
	bytes_used -= reply->bytes;
	MHD_destroy_response(reply->response);
	free(reply);
}

u64 colld_reply_bytes(void)
{
	return bytes_used;
}
