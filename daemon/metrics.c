// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metrics.h"

enum { LISTENERS_MAX = 16 };

struct colld_metrics {
	struct MHD_Daemon *daemon;
	int fd;
	colld_metrics_write *write;
	void *data;
};

static enum MHD_Result metrics_answer(void *data, struct MHD_Connection *connection,
				      const char *url, const char *method, const char *version,
				      const char *upload, size_t *upload_bytes, void **state)
{
	static const char missing[] = "metrics are at /metrics\n";
	const struct colld_metrics *metrics = data;
	const bool found = !strcmp(url, "/metrics") && !strcmp(method, "GET");
	struct MHD_Response *response;
	enum MHD_Result queued;
	size_t bytes = 0;
	char *text = NULL;
	FILE *to;

	(void)version;
	(void)upload;
	(void)upload_bytes;
	(void)state;
	to = found ? open_memstream(&text, &bytes) : NULL;
	if (to) {
		metrics->write(metrics->data, to);
		fclose(to);
	}
	response = text ? MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE) :
			  MHD_create_response_from_buffer(strlen(missing), (void *)missing,
							  MHD_RESPMEM_PERSISTENT);
	MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4");
	queued = MHD_queue_response(connection, text ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND, response);
	MHD_destroy_response(response);
	return queued;
}

/* A socket, or -errno, of which libmicrohttpd says nothing certain. */
static int listen_at(const char *address, int port)
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
	if (!bind(fd, (const struct sockaddr *)&at, sizeof(at)) && !listen(fd, LISTENERS_MAX))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static int metrics_listen(struct colld_metrics *metrics, const char *address, int port)
{
	const int fd = listen_at(address, port);
	const union MHD_DaemonInfo *info;

	if (fd < 0)
		return fd;
	/* No thread of its own; a slow client delays only itself. The socket is the library's. */
	metrics->daemon =
		MHD_start_daemon(MHD_USE_EPOLL, port, NULL, NULL, metrics_answer, metrics,
				 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned int)LISTENERS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, 10u,
				 MHD_OPTION_END);
	info = metrics->daemon ? MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_EPOLL_FD) :
				 NULL;
	if (!info)
		return -ENOMEM;
	metrics->fd = info->epoll_fd;
	return 0;
}

int colld_metrics_open(struct colld_metrics **metrics, const char *address, int port,
		       colld_metrics_write *write, void *data)
{
	struct colld_metrics *new = calloc(1, sizeof(*new));
	int error;

	*metrics = NULL;
	if (!new)
		return -ENOMEM;
	new->write = write;
	new->data = data;
	error = metrics_listen(new, address, port);
	if (error)
		colld_metrics_close(new);
	else
		*metrics = new;
	return error;
}

int colld_metrics_fd(const struct colld_metrics *metrics)
{
	return metrics->fd;
}

void colld_metrics_progress(struct colld_metrics *metrics)
{
	MHD_run(metrics->daemon);
}

void colld_metrics_close(struct colld_metrics *metrics)
{
	if (metrics && metrics->daemon)
		MHD_stop_daemon(metrics->daemon);
	free(metrics);
}
