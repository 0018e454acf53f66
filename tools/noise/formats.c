// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/noise/text.h"
#include "tools/common/arguments.h"
#include "tools/common/printed.h"
#include "figures.h"
#include "formats.h"
#include "node/units.h"

const char *const noise_format_names[NOISE_FORMATS] = { "capture", "netgauge", "osnoise", "ftq",
							 "csv" };

enum { LINE_MAX_BYTES = 512, TIME_BITS = 62 };

__attribute__((format(printf, 3, 4)))
static int formats_wrong(struct coll_text_error *error, u32 line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(error->reason, sizeof(error->reason), format, list);
	va_end(list);
	error->line = line;
	return -EINVAL;
}

/* ---- lines and words ----------------------------------------------------------------------- */

struct lines {
	const char *at, *end;
	u32 number;
	char line[LINE_MAX_BYTES];
};

/* 1: `line` holds the next line; 0: end of file. Lines that are too long are cut. */
static int next_line(struct lines *lines)
{
	const char *end;
	size_t length;

	if (lines->at >= lines->end)
		return 0;
	end = memchr(lines->at, '\n', lines->end - lines->at);
	if (!end)
		end = lines->end;
	length = end - lines->at < LINE_MAX_BYTES - 1 ? end - lines->at : LINE_MAX_BYTES - 1;
	memcpy(lines->line, lines->at, length);
	lines->line[length] = 0;
	while (length && isspace((unsigned char)lines->line[length - 1]))
		lines->line[--length] = 0;
	lines->at = end + 1;
	lines->number++;
	return 1;
}

static const char *skip_space(const char *text)
{
	return text + strspn(text, " \t");
}

/* ---- netgauge ----------------------------------------------------------------------------- */

/* "# Measurement period: 2.00 s" */
static void read_period(const char *comment, u64 *watched)
{
	static const char says[] = "# Measurement period: ";

	if (strncmp(comment, says, strlen(says)) ||
	    !coll_text_scaled(comment + strlen(says), NODE_S, watched))
		*watched = 0;
}

/* The measurement period of the header, or at least the span of the events. */
static int add_watched(struct node_capture *capture, u32 number, u64 watched, u64 already)
{
	struct coll_noise_cpu cpu = { .cpu = number, .watched = watched };
	u64 i;

	for (i = already; watched && i < capture->head.events; i++) {
		const u64 end = capture->event[i].start + capture->event[i].duration;

		cpu.watched = end > cpu.watched ? end : cpu.watched;
	}
	return watched ? node_capture_add_cpu(capture, &cpu) : 0;
}

static int parse_netgauge(struct lines *lines, u32 cpu, struct node_capture *capture,
			  struct coll_text_error *error)
{
	const u64 already = capture->head.events;
	u64 watched = 0;

	while (next_line(lines)) {
		const char *at = skip_space(lines->line);
		u64 start, duration;

		if (*at == '#' && !watched)
			read_period(at, &watched);
		if (coll_noise_line_is_empty(at))
			continue;
		if (!coll_noise_pair(at, &start, &duration))
			return formats_wrong(error, lines->number,
					     "'%.60s' is not \"start duration\" in ns",
					     lines->line);
		if (node_capture_add_event(capture, start, duration, cpu, COLL_NOISE_UNKNOWN, 0))
			return -ENOMEM;
	}
	return add_watched(capture, cpu, watched, already);
}

static void print_netgauge(const struct node_capture *capture, u32 index, FILE *to)
{
	const struct coll_noise_cpu *cpu = &capture->cpu[index];
	const struct coll_noise_event *event = node_capture_events(capture, index);
	u64 i, total = 0;

	for (i = 0; i < cpu->events; i++)
		total += event[i].duration;
	fprintf(to, "# %s, Linux %s, CPU %u\n# Minimal cycle length [ns]: %.2f\n"
		"# Number of recorded events: %llu (lost: %llu)\n# Threshold: %llu ns\n"
		"# Time [ns]\tduration [ns]\n", capture->head.host, capture->head.kernel, cpu->cpu,
		cpu->loop / 1e3, (unsigned long long)cpu->events, (unsigned long long)cpu->lost,
		(unsigned long long)capture->head.threshold);
	for (i = 0; i < cpu->events; i++)
		fprintf(to, "%llu\t%llu\n",
			(unsigned long long)(event[i].start - (event[i].start >= cpu->first ?
							       cpu->first : 0)),
			(unsigned long long)event[i].duration);
	fprintf(to, "# CPU overhead due to noise: %.4f%%\n# Measurement period: %.6f s\n",
		cpu->watched ? 100. * total / cpu->watched : 0, cpu->watched / 1e9);
}

/* ---- osnoise ------------------------------------------------------------------------------ */

static int parse_trace_line(struct lines *lines, const struct noise_import *import,
			    struct node_capture *capture, struct coll_text_error *error)
{
	struct coll_noise_traced traced;
	const int found = coll_noise_traced(lines->line, &traced);
	const bool sample = traced.cause == COLL_NOISE_HARDWARE;
	u32 source = 0;

	if (!found)
		return 0;
	if (found < 0)
		return formats_wrong(error, lines->number, "'%.60s' is not an osnoise event",
				     lines->line);
	/* A gap without interference is hardware. Other gaps are listed as their parts. */
	if (import->samples ? !sample : sample && traced.interference)
		return 0;
	if (*traced.name && node_capture_source(capture, traced.cause, traced.number, traced.name,
						&source))
		return -ENOMEM;
	return node_capture_add_event(capture, traced.start, traced.duration, traced.cpu,
				      import->samples ? COLL_NOISE_UNKNOWN : traced.cause, source);
}

/* The trace's clock starts at boot: times count from the first event. */
static void from_first(struct node_capture *capture, u64 already)
{
	u64 first = UINT64_MAX, i;

	for (i = already; i < capture->head.events; i++)
		if (capture->event[i].start < first)
			first = capture->event[i].start;
	for (i = already; i < capture->head.events; i++)
		capture->event[i].start -= first;
}

static int parse_osnoise(struct lines *lines, const struct noise_import *import,
			 struct node_capture *capture, struct coll_text_error *error)
{
	const u64 already = capture->head.events;
	int status = 0;

	while (!status && next_line(lines))
		status = parse_trace_line(lines, import, capture, error);
	from_first(capture, already);
	return status;
}

static void print_osnoise(const struct node_capture *capture, FILE *to)
{
	static const char *const names[COLL_NOISE_CAUSES] = {
		[COLL_NOISE_NMI] = "nmi_noise",		[COLL_NOISE_IRQ] = "irq_noise",
		[COLL_NOISE_SOFTIRQ] = "softirq_noise", [COLL_NOISE_THREAD] = "thread_noise",
	};
	u64 i;

	fprintf(to, "# tracer: osnoise\n#\n");
	for (i = 0; i < capture->head.events; i++) {
		const struct coll_noise_event *e = &capture->event[i];
		const struct coll_noise_source *source = e->source ?
			&capture->source[e->source - 1] : NULL;
		const unsigned long long s = e->start / NODE_S, ns = e->start % NODE_S;
		const u64 end = e->start + e->duration;

		fprintf(to, "         osnoise/%u-0     [%03u] ..... %5llu.%06llu: %s: ", e->cpu,
			e->cpu, (unsigned long long)(end / NODE_S),
			(unsigned long long)(end % NODE_S / NODE_US),
			names[e->cause] ? names[e->cause] : "sample_threshold");
		if (names[e->cause] && e->cause != COLL_NOISE_NMI)
			fprintf(to, "%s:%u ", source ? source->name : "unknown",
				source ? source->number : 0);
		fprintf(to, "start %llu.%09llu duration %llu ns%s\n", s, ns,
			(unsigned long long)e->duration,
			names[e->cause] ? "" : " interference 0");
	}
}

/* ---- ftq ------------------------------------------------------------------------------------- */

struct quantum {
	u64 time, work;
};

static int read_quanta(struct lines *lines, struct quantum **list, u64 *count,
		       struct coll_text_error *error)
{
	u64 capacity = 0;

	while (next_line(lines)) {
		struct quantum q;
		const char *at = skip_space(lines->line);

		if (coll_noise_line_is_empty(at))
			continue;
		if (!coll_noise_pair(at, &q.time, &q.work) ||
		    (*count && q.time <= (*list)[*count - 1].time))
			return formats_wrong(error, lines->number,
					     "'%.60s' is not \"time work\", times rising",
					     lines->line);
		if (*count == capacity) {
			struct quantum *more =
				reallocarray(*list, capacity ? 2 * capacity : 1024, sizeof(q));

			if (!more)
				return -ENOMEM;
			*list = more;
			capacity = capacity ? 2 * capacity : 1024;
		}
		(*list)[(*count)++] = q;
	}
	return *count > 1
		       ? 0
		       : formats_wrong(error, lines->number, "two lines of \"time work\" at least");
}

/* The usual length of a quantum, and the maximum of work in one. */
static int find_quantum(const struct quantum *list, u64 count, u64 *length, u64 *most)
{
	u64 *lengths = calloc(count, sizeof(*lengths)), i;

	if (!lengths)
		return -ENOMEM;
	*most = list[0].work;
	for (i = 1; i < count; i++) {
		lengths[i - 1] = list[i].time - list[i - 1].time;
		*most = list[i].work > *most ? list[i].work : *most;
	}
	noise_sort(lengths, count - 1);
	*length = lengths[(count - 1) / 2];
	free(lengths);
	return 0;
}

static int add_quanta(const struct quantum *list, u64 count, u32 cpu, struct node_capture *capture)
{
	u64 length, most, i;
	int status = find_quantum(list, count, &length, &most);
	const struct coll_noise_cpu watched = {
		.cpu = cpu, .first = list[0].time, .watched = status ? 0 : length * count,
	};

	if (!status)
		status = node_capture_add_cpu(capture, &watched);
	for (i = 0; !status && i < count; i++) {
		const u64 lost = most ? llround((double)(most - list[i].work) / most * length) : 0;

		if (lost)
			status = node_capture_add_event(capture, list[i].time, lost, cpu,
							COLL_NOISE_UNKNOWN, 0);
	}
	if (!status && most && length / most > capture->head.threshold)
		capture->head.threshold = length / most;
	return status;
}

static int parse_ftq(struct lines *lines, u32 cpu, struct node_capture *capture,
		     struct coll_text_error *error)
{
	struct quantum *list = NULL;
	u64 count = 0;
	int status = read_quanta(lines, &list, &count, error);

	if (!status && (list[count - 1].time - list[0].time) > (1ull << TIME_BITS) / 2)
		status = formats_wrong(error, lines->number, "times that far apart");
	if (!status)
		status = add_quanta(list, count, cpu, capture);
	free(list);
	return status;
}

/* Work in ns: the quantum less the noise in it. */
static void print_ftq(const struct node_capture *capture, u32 index, u64 quantum, FILE *to)
{
	const struct coll_noise_cpu *cpu = &capture->cpu[index];
	const struct coll_noise_event *event = node_capture_events(capture, index);
	const u64 quanta = cpu->watched / quantum;
	u64 q, i = 0, total = 0;

	for (q = 0; q < cpu->events; q++)
		total += event[q].duration;
	fprintf(to, "# Frequency %f\n# Ticks per ns: 1\n# octave: pwelch(x(:,2),[],[],[],%f)\n"
		"# Fraction %f\n", 1e9 / quantum, 1e9 / quantum,
		cpu->watched ? 1 - (double)total / cpu->watched : 1);
	for (q = 0; q < quanta; q++) {
		const u64 from = cpu->first + q * quantum, end = from + quantum;
		u64 work = quantum, k;

		while (i < cpu->events && event[i].start + event[i].duration <= from)
			i++;
		for (k = i; k < cpu->events && event[k].start < end; k++) {
			const u64 left = event[k].start > from ? event[k].start : from;
			const u64 right = event[k].start + event[k].duration;

			if (right > left)
				work -= ((right < end ? right : end) - left) > work ?
						work : (right < end ? right : end) - left;
		}
		fprintf(to, "%llu %llu\n", (unsigned long long)(q * quantum),
			(unsigned long long)work);
	}
}

/* ---- csv ---------------------------------------------------------------- */

static void print_csv(const struct node_capture *capture, FILE *to)
{
	u64 i;

	fprintf(to, "cpu,start_ns,duration_ns,cause,number,name\n");
	for (i = 0; i < capture->head.events; i++) {
		const struct coll_noise_event *e = &capture->event[i];
		const struct coll_noise_source *source = e->source ?
			&capture->source[e->source - 1] : NULL;
		const char *c = source ? source->name : "";

		fprintf(to, "%u,%llu,%llu,%s,%u,\"", e->cpu, (unsigned long long)e->start,
			(unsigned long long)e->duration, node_cause_name(e->cause),
			source ? source->number : 0);
		for (; *c; c++)
			fprintf(to, *c == '"' ? "\"\"" : "%c", *c);
		fprintf(to, "\"\n");
	}
}

/*
 * ---- reading and writing
 * ------------------------------------------------------------------------
 */

static bool formats_holds(const char *data, size_t bytes, const char *text)
{
	return memmem(data, bytes, text, strlen(text)) != NULL;
}

static enum noise_format formats_guess(const char *data, size_t bytes)
{
	const u64 magic = COLL_NOISE_MAGIC;

	if (bytes >= sizeof(magic) && !memcmp(data, &magic, sizeof(magic)))
		return NOISE_CAPTURE;
	if (formats_holds(data, bytes, "tracer: osnoise") ||
	    formats_holds(data, bytes, "_noise: ") ||
	    formats_holds(data, bytes, "sample_threshold: "))
		return NOISE_OSNOISE;
	if (formats_holds(data, bytes, "# Ticks per ns") ||
	    formats_holds(data, bytes, "# octave: pwelch"))
		return NOISE_FTQ;
	return NOISE_NETGAUGE;
}

int noise_format_parse(const void *data, size_t bytes, const struct noise_import *import,
		       struct node_capture *capture, struct coll_text_error *error)
{
	struct lines *lines;
	enum noise_format format = import->format;
	int status;

	*error = (struct coll_text_error){ 0 };
	if (format == NOISE_GUESS)
		format = formats_guess(data, bytes);
	if (format == NOISE_CAPTURE) {
		node_capture_free(capture);
		return node_capture_parse(data, bytes, capture, error);
	}
	if (format == NOISE_CSV)
		return formats_wrong(error, 0, "csv; it can only be written");
	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	lines->at = data;
	lines->end = lines->at + bytes;
	if (format == NOISE_OSNOISE)
		status = parse_osnoise(lines, import, capture, error);
	else if (format == NOISE_FTQ)
		status = parse_ftq(lines, import->cpu, capture, error);
	else
		status = parse_netgauge(lines, import->cpu, capture, error);
	free(lines);
	return status;
}

bool noise_format_is_single(enum noise_format format)
{
	return format == NOISE_NETGAUGE || format == NOISE_FTQ;
}

int noise_format_print(const struct node_capture *capture, enum noise_format format, u32 cpu,
		       u64 quantum, FILE *to)
{
	switch (format) {
	case NOISE_NETGAUGE:
		print_netgauge(capture, cpu, to);
		break;
	case NOISE_OSNOISE:
		print_osnoise(capture, to);
		break;
	case NOISE_FTQ:
		print_ftq(capture, cpu, quantum, to);
		break;
	case NOISE_CSV:
		print_csv(capture, to);
		break;
	default:
		return node_capture_write(capture, to);
	}
	return printed_error(to);
}

/* ---- files -------------------------------------------------------------- */

static int read_all(FILE *from, char **data, size_t *bytes)
{
	size_t capacity = 0;

	*bytes = 0;
	*data = NULL;
	do {
		char *more = realloc(*data, capacity = capacity ? 2 * capacity : 1 << 16);

		if (!more)
			return -ENOMEM;
		*data = more;
		*bytes += fread(*data + *bytes, 1, capacity - *bytes, from);
	} while (*bytes == capacity);
	return ferror(from) ? -EIO : 0;
}

int noise_load(const char *command, const char *path, const struct noise_import *import,
	       struct node_capture *capture)
{
	FILE *from = strcmp(path, "-") ? fopen(path, "re") : stdin;
	struct coll_text_error error = { 0 };
	char *data = NULL;
	size_t bytes = 0;
	int status = from ? read_all(from, &data, &bytes) : -errno;

	node_capture_init(capture);
	if (import->format != NOISE_CAPTURE)
		*capture->head.host = *capture->head.kernel = 0;
	if (!status)
		status = noise_format_parse(data, bytes, import, capture, &error);
	if (!status)
		status = node_capture_finish(capture);
	if (from && from != stdin)
		fclose(from);
	free(data);
	if (!status)
		return 0;
	fprintf(stderr, "%s %s: %s", argument_program, command, path);
	if (error.line)
		fprintf(stderr, ":%u", error.line);
	fprintf(stderr, ": %s\n", *error.reason ? error.reason : strerror(-status));
	node_capture_free(capture);
	return status;
}
