// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"
#include "output.h"

enum {
	SINK_FULL = 1 << 18,	/* bytes; above this the ranks' pipes are not read */
	LINE_MAX_BYTES = 1 << 20,	/* bytes; a longer line is split */
};

bool output_wanted(const struct output_sink *sink)
{
	return sink->bytes < SINK_FULL;
}

/* Appends. Bytes that memory cannot hold are lost, which is better than ending the job. */
static void output_append(char **data, size_t *bytes, size_t *capacity, const char *more,
			  size_t count)
{
	size_t need = *bytes + count;
	char *bigger;

	if (!count)
		return;
	if (need > *capacity) {
		bigger = realloc(*data, 2 * need);
		if (!bigger)
			return;
		*data = bigger;
		*capacity = 2 * need;
	}
	memcpy(*data + *bytes, more, count);
	*bytes += count;
}

static void sink_append(struct output_sink *sink, const char *data, size_t bytes)
{
	if (!sink->error)
		output_append(&sink->data, &sink->bytes, &sink->capacity, data, bytes);
}

static void end_line(struct output_source *source)
{
	char prefix[24];
	int n = snprintf(prefix, sizeof(prefix), "[%d] ", source->rank);

	if (source->rank >= 0)
		sink_append(source->sink, prefix, n);
	sink_append(source->sink, source->line, source->bytes);
	sink_append(source->sink, "\n", 1);
	source->bytes = 0;
}

static void split_lines(struct output_source *source, const char *data, size_t bytes)
{
	const char *end;
	size_t count;

	while (bytes) {
		end = memchr(data, '\n', bytes);
		count = end ? (size_t)(end - data) : bytes;
		output_append(&source->line, &source->bytes, &source->capacity, data, count);
		if (end || source->bytes >= LINE_MAX_BYTES)
			end_line(source);
		count += !!end;
		data += count;
		bytes -= count;
	}
}

void output_end(struct output_source *source)
{
	if (source->fd < 0)
		return;
	if (source->bytes)
		end_line(source);
	close(source->fd);
	source->fd = -1;
	free(source->line);
	source->line = NULL;
}

void output_read(struct output_source *source)
{
	char data[16384];
	ssize_t n;

	coll_assert(source->fd >= 0);
	if (source->sink->error == -EPIPE) {
		output_end(source);	/* the rank gets EPIPE, as it would without the launcher */
		return;
	}
	n = read(source->fd, data, sizeof(data));
	if (n > 0)
		split_lines(source, data, n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		output_end(source);
}

/* A pipe that polls writable takes PIPE_BUF bytes. Whole lines if they fit. */
static size_t output_portion(const struct output_sink *sink)
{
	size_t most = sink->bytes < PIPE_BUF ? sink->bytes : PIPE_BUF;
	const char *end = memrchr(sink->data, '\n', most);

	return end ? (size_t)(end + 1 - sink->data) : most;
}

void output_write(struct output_sink *sink)
{
	ssize_t n;

	if (!sink->bytes)
		return;
	n = write(sink->fd, sink->data, output_portion(sink));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		sink->error = n ? -errno : -EIO;
		sink->inside_line = false;
		sink->bytes = 0;
		return;
	}
	coll_assert((size_t)n <= sink->bytes);
	sink->inside_line = sink->data[n - 1] != '\n';
	sink->bytes -= n;
	memmove(sink->data, sink->data + n, sink->bytes);
}
