// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"
#include "http.h"

enum { TARGET_MAX = 1024, TIMEOUT_S = 10, TURNS = 8 };

struct colld_http {
	struct MHD_Daemon *daemon;
	int fd;
	colld_http_handler *handler;
	void *data;
};

struct colld_request {
	struct MHD_Connection *connection;
	struct MHD_Response *response;	/* NULL: it is not answered */
	u32 status;
	bool asked;
	bool suspended;			/* the handler has returned without an answer */
	char target[];
};

/* ---- answers --------------------------------------------------------------- */

const char *colld_request_target(const struct colld_request *request)
{
	return request->target;
}

struct http_hosts {
	const char *names;
	bool here;
};

static enum MHD_Result http_look_at_host(void *data, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct http_hosts *hosts = data;

	(void)kind;
	if (!strcasecmp(key, MHD_HTTP_HEADER_HOST))
		hosts->here &= value && colld_host_is_here(value, hosts->names);
	return MHD_YES;
}

bool colld_request_is_here(const struct colld_request *request, const char *names)
{
	struct http_hosts hosts = { names, true };

	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, http_look_at_host, &hosts);
	return hosts.here;
}

static struct MHD_Response *http_response(const struct colld_answer *answer,
					  enum MHD_ResponseMemoryMode mode)
{
	static const char nothing[] = "no memory\n";
	struct colld_answer_header header[COLLD_ANSWER_HEADERS];
	const u32 count = colld_answer_headers(&answer->head, header);
	struct MHD_Response *response = answer->text ?
		MHD_create_response_from_buffer(answer->head.bytes, answer->text, mode) :
		MHD_create_response_from_buffer(strlen(nothing), (void *)nothing,
						MHD_RESPMEM_PERSISTENT);
	u32 i;

	for (i = 0; response && i < count; i++)
		MHD_add_response_header(response, header[i].name, header[i].value);
	return response;
}

static void http_respond(struct colld_request *request, const struct colld_answer *answer,
			 enum MHD_ResponseMemoryMode mode)
{
	const bool suspended = request->suspended;

	request->response = http_response(answer, mode);
	request->status = answer->text ? answer->head.status : 503;
	request->suspended = false;
	if (suspended)
		MHD_resume_connection(request->connection);
}

void colld_request_answer(struct colld_request *request, const struct colld_answer *answer)
{
	http_respond(request, answer, MHD_RESPMEM_MUST_COPY);
}

void colld_request_give(struct colld_request *request, struct colld_answer *answer)
{
	http_respond(request, answer, MHD_RESPMEM_MUST_FREE);
	if (!request->response)
		free(answer->text);
	answer->text = NULL;
}

static enum MHD_Result http_send(struct colld_request *request)
{
	return request->response ? MHD_queue_response(request->connection, request->status,
						      request->response) :
				   MHD_NO;
}

/* ---- requests -------------------------------------------------------------- */

/* The first that the library tells of a request. NULL: too long, or no memory. */
static void *http_begin(void *data, const char *target, struct MHD_Connection *connection)
{
	const size_t bytes = strlen(target) + 1;
	struct colld_request *request =
		bytes <= TARGET_MAX ? calloc(1, sizeof(*request) + bytes) : NULL;

	(void)data;
	if (request) {
		request->connection = connection;
		memcpy(request->target, target, bytes);
	}
	return request;
}

static void http_end(void *data, struct MHD_Connection *connection, void **state,
		     enum MHD_RequestTerminationCode how)
{
	struct colld_request *request = *state;

	(void)data;
	(void)connection;
	(void)how;
	if (request && request->response)
		MHD_destroy_response(request->response);
	free(request);
	*state = NULL;
}

static enum MHD_Result http_refuse_long(struct MHD_Connection *connection)
{
	static char why[] = "the target is too long; valid: less than 1024 bytes\n";
	const struct colld_answer answer = {
		.head = { .status = 414, .type = COLLD_ANSWER_TEXT, .bytes = sizeof(why) - 1 }, .text = why };
	struct MHD_Response *response = http_response(&answer, MHD_RESPMEM_PERSISTENT);
	const enum MHD_Result queued = response ? MHD_queue_response(connection, 414, response) : MHD_NO;

	if (response)
		MHD_destroy_response(response);
	return queued;
}

/* The library calls it again when a suspended connection is resumed. */
static enum MHD_Result http_handle(void *data, struct MHD_Connection *connection, const char *url,
				   const char *method, const char *version, const char *upload,
				   size_t *upload_bytes, void **state)
{
	struct colld_request *request = *state;
	const struct colld_http *http = data;
	struct colld_answer refused;

	(void)url;
	(void)version;
	(void)upload;
	(void)upload_bytes;
	if (!request)
		return http_refuse_long(connection);
	if (request->asked)
		return http_send(request);
	request->asked = true;
	if (!strcmp(method, "GET") || !strcmp(method, "HEAD")) {
		http->handler(http->data, request);
	} else {
		colld_answer_say(&refused, 405, "only GET is served here");
		colld_request_answer(request, &refused);
		colld_answer_free(&refused);
	}
	if (request->response)
		return http_send(request);
	request->suspended = true;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

/* ---- the door ---------------------------------------------------------------- */

/* A socket, or -errno, of which libmicrohttpd says nothing certain. */
static int http_listen(const char *address, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int one = 1;
	int fd, error;

	if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
		return -EINVAL;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (const struct sockaddr *)&at, sizeof(at)) && !listen(fd, COLLD_HTTP_CONNECTIONS))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static int http_start(struct colld_http *http, const char *address, int port)
{
	const int fd = http_listen(address, port);
	const union MHD_DaemonInfo *info;

	if (fd < 0)
		return fd;
	/* No thread of its own; a slow client delays only itself. The socket is the library's. */
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, port, NULL, NULL,
					http_handle, http, MHD_OPTION_LISTEN_SOCKET, fd,
					MHD_OPTION_CONNECTION_LIMIT,
					(unsigned int)COLLD_HTTP_CONNECTIONS,
					MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)TIMEOUT_S,
					MHD_OPTION_URI_LOG_CALLBACK, http_begin, http,
					MHD_OPTION_NOTIFY_COMPLETED, http_end, http, MHD_OPTION_END);
	info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return -ENOMEM;
	http->fd = info->epoll_fd;
	return 0;
}

int colld_http_open(struct colld_http **http, const char *address, int port,
		    colld_http_handler *handler, void *data)
{
	struct colld_http *new = calloc(1, sizeof(*new));
	int error;

	*http = NULL;
	if (!new)
		return -ENOMEM;
	new->handler = handler;
	new->data = data;
	error = http_start(new, address, port);
	if (error)
		colld_http_close(new);
	else
		*http = new;
	return error;
}

int colld_http_fd(const struct colld_http *http)
{
	return http->fd;
}

void colld_http_progress(struct colld_http *http)
{
	MHD_UNSIGNED_LONG_LONG pause;
	int turn = 0;

	/* Of what is left to be done at once no event tells. */
	do
		MHD_run(http->daemon);
	while (++turn < TURNS && MHD_get_timeout(http->daemon, &pause) == MHD_YES && !pause);
}

void colld_http_close(struct colld_http *http)
{
	if (http && http->daemon)
		MHD_stop_daemon(http->daemon);
	free(http);
}
