/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One text that any number of requests by HTTP are answered with: it is not copied, and is there until the last has it. */
#ifndef COLL_DAEMON_REPLY_H
#define COLL_DAEMON_REPLY_H

#include <microhttpd.h>

#include "answer.h"

struct colld_reply {
	u32 uses;
	u32 status;
	u64 bytes;			/* of the text */
	struct MHD_Response *response;
};

/* The text becomes the reply's, which has one use. NULL: no memory; the answer has no text then, either. */
struct colld_reply *colld_reply_make(struct colld_answer *answer);
struct colld_reply *colld_reply_use(struct colld_reply *reply);
/* NULL is none. */
void colld_reply_drop(struct colld_reply *reply);
/* Of the texts of all that are used. */
u64 colld_reply_bytes(void);

#endif
