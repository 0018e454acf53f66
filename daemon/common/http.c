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

#include "connections.h"
#include "host.h"
#include "http.h"
#include "metrics.h"

enum { TARGET_MAX = 1024, TIMEOUT_S = 10, TURNS = 8, GLANCE_MS = 1000 };

struct colld_http {
	struct MHD_Daemon *daemon;
	int fd;
	colld_http_handler *handler;
	void *data;
	struct colld_connections connections;
	u32 open;			/* connections, after the latest progress */
};

struct colld_request {
	struct MHD_Connection *connection;
	struct colld_connection *of;
	struct colld_reply *reply;	/* NULL: it is not answered */
	bool failed;			/* and will not be */
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

u64 colld_request_who(const struct colld_request *request)
{
	return request->of->who;
}

void colld_request_reply(struct colld_request *request, struct colld_reply *reply)
{
	const bool suspended = request->suspended;

	request->reply = colld_reply_use(reply);
	request->suspended = false;
	if (suspended)
		MHD_resume_connection(request->connection);
}

/* Without memory for an answer the connection ends. */
void colld_request_answer(struct colld_request *request, struct colld_answer *answer)
{
	struct colld_reply *reply = colld_reply_make(answer);

	if (reply) {
		colld_request_reply(request, reply);
		colld_reply_drop(reply);
		return;
	}
	request->failed = true;
	if (request->suspended)
		MHD_resume_connection(request->connection);
	request->suspended = false;
}

static enum MHD_Result http_send(struct colld_request *request)
{
	if (!request->reply)
		return MHD_NO;
	colld_connection_is_sent(request->of);
	return MHD_queue_response(request->connection, request->reply->status, request->reply->response);
}

/* ---- requests -------------------------------------------------------------- */

/* NULL: it was refused. */
static struct colld_connection *http_connection(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void http_notice(void *data, struct MHD_Connection *connection, void **of,
			enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct colld_http *http = data;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*of = info ? colld_connections_add(&http->connections, info->connect_fd) : NULL;
	} else if (*of) {
		colld_connections_remove(*of);
		*of = NULL;
	}
}

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

	struct colld_connection *of = http_connection(connection);

	(void)data;
	(void)how;
	if (request)
		colld_reply_drop(request->reply);
	free(request);
	if (of)
		colld_connection_is_free(of);
	*state = NULL;
}

static enum MHD_Result http_refuse_long(struct MHD_Connection *connection)
{
	enum MHD_Result queued;
	struct colld_answer answer;
	struct colld_reply *reply;

	colld_answer_say(&answer, 414, "the target is too long; valid: less than %d bytes", TARGET_MAX);
	reply = colld_reply_make(&answer);
	queued = reply ? MHD_queue_response(connection, reply->status, reply->response) : MHD_NO;
	colld_reply_drop(reply);
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
	request->of = http_connection(connection);
	if (!request->of)
		return MHD_NO;
	colld_connection_waits(request->of);
	if (!strcmp(method, "GET") || !strcmp(method, "HEAD")) {
		http->handler(http->data, request);
	} else {
		colld_answer_say(&refused, 405, "only GET is served here");
		colld_request_answer(request, &refused);
	}
	if (request->reply || request->failed)
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
	if (!bind(fd, (const struct sockaddr *)&at, sizeof(at)) && !listen(fd, COLLD_CONNECTIONS))
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
					(unsigned int)COLLD_CONNECTIONS,
					MHD_OPTION_NOTIFY_CONNECTION, http_notice, http,
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
	colld_connections_init(&new->connections);
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

int colld_http_pause(const struct colld_http *http)
{
	return http->open ? GLANCE_MS : -1;
}

void colld_http_progress(struct colld_http *http)
{
	MHD_UNSIGNED_LONG_LONG pause;
	int turn = 0;

	colld_connections_expire(&http->connections);
	/* Of what is left to be done at once no event tells. */
	do
		MHD_run(http->daemon);
	while (++turn < TURNS && MHD_get_timeout(http->daemon, &pause) == MHD_YES && !pause);
	http->open = colld_connections_count(&http->connections);
}

void colld_http_close(struct colld_http *http)
{
	if (http && http->daemon)
		MHD_stop_daemon(http->daemon);
	free(http);
}

void colld_http_metrics(const struct colld_http *http, FILE *to)
{
	colld_metrics_counter(to, "coll_http_connections_refused_total", "Connections by HTTP of who had too many.");
	colld_metrics_count(to, "coll_http_connections_refused_total", NULL, NULL, http->connections.refused);
	colld_metrics_counter(to, "coll_http_connections_slow_total", "Connections by HTTP that were cut off: too slow.");
	colld_metrics_count(to, "coll_http_connections_slow_total", NULL, NULL, http->connections.slow);
}
