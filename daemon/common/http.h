/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The door for HTTP: an address of TCP, where anybody may ask who reaches it. It has no thread. */
#ifndef COLL_DAEMON_HTTP_H
#define COLL_DAEMON_HTTP_H

#include <stdbool.h>
#include <stdio.h>

#include "connections.h"
#include "reply.h"

struct colld_http;
struct colld_request;

/*
 * Called once for each GET, by colld_http_progress(). The request is answered in it or later, once, and
 * before colld_http_close(); until then it holds one of the door's connections.
 */
typedef void colld_http_handler(void *data, struct colld_request *request);

/* On an error, a -errno, *http is NULL. */
int colld_http_open(struct colld_http **http, const char *address, int port,
		    colld_http_handler *handler, void *data);
/* Readable when colld_http_progress() is due; it is as well after a late answer, and after the pause. */
int colld_http_fd(const struct colld_http *http);
/* In ms, while there are clients, which may be too slow; -1: there are none. */
int colld_http_pause(const struct colld_http *http);
void colld_http_progress(struct colld_http *http);
void colld_http_close(struct colld_http *http);
void colld_http_metrics(const struct colld_http *http, FILE *to);

/* "/path?query" as it was sent. */
const char *colld_request_target(const struct colld_request *request);
/* Whether each Host header of it is a name of this node (host.h); every browser sends one. */
bool colld_request_is_here(const struct colld_request *request, const char *names);
/* Who asks: peer.h. */
u64 colld_request_who(const struct colld_request *request);
/* The text is the request's from now on, and the answer has none any more. */
void colld_request_answer(struct colld_request *request, struct colld_answer *answer);
/* The reply is used once more. */
void colld_request_reply(struct colld_request *request, struct colld_reply *reply);

#endif
