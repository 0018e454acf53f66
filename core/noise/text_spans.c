// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Events from files that others write, and from captures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "core/text_parsed.h"

struct noise_spans {
	struct coll_noise_span *span;
	u32 count;
	u32 cpu;	/* COLL_NONE: not chosen yet */
	u64 length;
};

static int noise_text_spans_add(struct noise_spans *spans, u64 start, u64 duration,
				struct coll_text_error *error)
{
	struct coll_noise_span *more;

	if (spans->count == COLL_NOISE_SPANS_MAX)
		return coll_parse_error(error, "more than %u events", COLL_NOISE_SPANS_MAX);
	if (!(spans->count & (spans->count - 1))) {
		more = realloc(spans->span, (2 * (size_t)spans->count + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		spans->span = more;
	}
	spans->span[spans->count++] = (struct coll_noise_span){ start, duration };
	if (start + duration > spans->length)
		spans->length = start + duration;
	return 0;
}

/* Whether events of this CPU are wanted; the first CPU is, unless one was asked for. */
static bool noise_text_spans_wanted(struct noise_spans *spans, u32 cpu)
{
	if (spans->cpu == COLL_NONE)
		spans->cpu = cpu;
	return spans->cpu == cpu;
}

/* ---- text --------------------------------------------------------------------- */

/* Netgauge and LogGOPSim. */
static int read_pair(struct noise_spans *spans, const char *line, struct coll_text_error *error)
{
	u64 start, duration;

	if (!coll_noise_pair(line, &start, &duration) || duration > COLL_NOISE_DURATION_MAX)
		return coll_parse_error(error, "line %u is not 'start_ns duration_ns'",
					error->line);
	if (spans->count && start < spans->span[spans->count - 1].start)
		return coll_parse_error(error, "line %u starts before the one above it",
					error->line);
	return noise_text_spans_add(spans, start, duration, error);
}

/* The parts of a gap, or what has none. */
static int add_traced(struct noise_spans *spans, const struct coll_noise_traced *traced,
		      struct coll_text_error *error)
{
	if (traced->duration > COLL_NOISE_DURATION_MAX)
		return coll_parse_error(error, "line %u: longer than %llu ns", error->line,
					COLL_NOISE_DURATION_MAX);
	if (traced->cause == COLL_NOISE_HARDWARE && traced->interference)
		return 0;
	return noise_text_spans_wanted(spans, traced->cpu) ?
		       noise_text_spans_add(spans, traced->start, traced->duration, error) : 0;
}

static int by_start(const void *a, const void *b)
{
	u64 left = ((const struct coll_noise_span *)a)->start;
	u64 right = ((const struct coll_noise_span *)b)->start;

	return (left > right) - (left < right);
}

/* A trace comes in the order of ends, on a clock that began at boot. */
static void from_zero(struct noise_spans *spans)
{
	u64 first;
	u32 i;

	qsort(spans->span, spans->count, sizeof(*spans->span), by_start);
	first = spans->span[0].start;
	for (i = 0; i < spans->count; i++)
		spans->span[i].start -= first;
	spans->length -= first;
}

static int read_text(struct noise_spans *spans, FILE *file, struct coll_text_error *error)
{
	struct coll_noise_traced traced;
	bool osnoise = false;
	char line[512];
	int wrong = 0, found;

	while (!wrong && fgets(line, sizeof(line), file)) {
		error->line++;
		found = coll_noise_line_is_empty(line) ? 0 : coll_noise_traced(line, &traced);
		osnoise |= found;
		if (found < 0)
			wrong = coll_parse_error(
				error, "line %u has no 'start S.NS duration NS ns'", error->line);
		else if (found)
			wrong = add_traced(spans, &traced, error);
		else if (!osnoise && !coll_noise_line_is_empty(line))
			wrong = read_pair(spans, line, error);
	}
	if (!wrong && osnoise && spans->count)
		from_zero(spans);
	return wrong;
}

/* ---- captures ------------------------------------------------------------------- */

static int cut_short(struct coll_text_error *error)
{
	return coll_parse_error(error, "the capture is cut short");
}

/* The entry of the CPU that is wanted. */
static int find_cpu(struct noise_spans *spans, FILE *file, u32 cpus, struct coll_noise_cpu *found,
		    struct coll_text_error *error)
{
	struct coll_noise_cpu cpu;
	u32 i;

	for (i = 0; i < cpus; i++) {
		if (fread(&cpu, sizeof(cpu), 1, file) != 1)
			return cut_short(error);
		if (noise_text_spans_wanted(spans, cpu.cpu))
			*found = cpu;
	}
	return 0;
}

static int read_capture(struct noise_spans *spans, FILE *file, struct coll_text_error *error)
{
	struct coll_noise_capture head;
	struct coll_noise_cpu cpu = { 0 };
	struct coll_noise_event event;
	u64 i;
	int wrong;

	if (fread(&head, sizeof(head), 1, file) != 1)
		return cut_short(error);
	if (head.version != COLL_NOISE_VERSION || head.sources > COLL_NOISE_SPANS_MAX)
		return coll_parse_error(error, "a capture of version %u; valid: %u", head.version,
					COLL_NOISE_VERSION);
	wrong = find_cpu(spans, file, head.cpus, &cpu, error);
	if (!wrong && fseek(file, head.sources * sizeof(struct coll_noise_source), SEEK_CUR))
		wrong = cut_short(error);
	for (i = 0; i < head.events && !wrong; i++) {
		if (fread(&event, sizeof(event), 1, file) != 1)
			wrong = cut_short(error);
		else if (event.cpu == spans->cpu &&
			 (event.start < cpu.first || event.start >> 62 || event.duration >> 62))
			wrong = coll_parse_error(error, "event %llu is outside the time watched",
						 (unsigned long long)i);
		else if (event.cpu == spans->cpu)
			wrong = noise_text_spans_add(spans, event.start - cpu.first, event.duration,
						     error);
	}
	if (cpu.watched > spans->length)
		spans->length = cpu.watched;
	return wrong;
}

/* ---- files -------------------------------------------------------------------- */

static bool is_capture(FILE *file)
{
	u64 magic = 0;
	bool is = fread(&magic, sizeof(magic), 1, file) == 1 && magic == COLL_NOISE_MAGIC;

	rewind(file);
	return is;
}

int coll_noise_read_spans(const char *path, u32 cpu, struct coll_noise_span **table, u32 *count,
			  u64 *length, struct coll_text_error *error)
{
	struct noise_spans spans = { .cpu = cpu };
	FILE *file = fopen(path, "re");
	int wrong;

	if (!file)
		return coll_parse_error(error, "cannot read %s: %s", path, strerror(errno));
	wrong = is_capture(file) ? read_capture(&spans, file, error) :
				   read_text(&spans, file, error);
	fclose(file);
	if (!wrong && !spans.count && cpu != COLL_NONE)
		wrong = coll_parse_error(error, "%s has no events of CPU %u", path, cpu);
	else if (!wrong && !spans.count)
		wrong = coll_parse_error(error, "%s has no events", path);
	if (wrong) {
		free(spans.span);
		return wrong;
	}
	*table = spans.span;
	*count = spans.count;
	*length = spans.length;
	return 0;
}
