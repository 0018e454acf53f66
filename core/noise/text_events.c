// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Single events, in the lines that other tools write of them. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { TIME_BITS = 62 };

static const char *skip_space(const char *text)
{
	return text + strspn(text, " \t\r\n");
}

const char *coll_text_scaled(const char *text, u64 unit, u64 *value)
{
	char *rest;
	u64 place = unit, whole;

	if (!isdigit((unsigned char)*text))
		return NULL;
	errno = 0;
	whole = strtoull(text, &rest, 10);
	if (errno || whole >= (1ull << TIME_BITS) / unit)
		return NULL;
	*value = whole * unit;
	if (*rest != '.')
		return rest;
	for (rest++; isdigit((unsigned char)*rest); rest++) {
		if (place == 1 && *rest >= '5') {
			++*value;	/* rounds the first digit beyond ns */
			place = 0;
		}
		place /= 10;
		*value += place * (*rest - '0');
	}
	return rest;
}

bool coll_noise_line_is_empty(const char *line)
{
	line = skip_space(line);
	return !*line || *line == '#';
}

bool coll_noise_pair(const char *line, u64 *first, u64 *second)
{
	const char *at = coll_text_scaled(skip_space(line), 1, first);

	if (!at || skip_space(at) == at)
		return false;
	at = coll_text_scaled(skip_space(at), 1, second);
	return at && coll_noise_line_is_empty(at);
}

/* ---- the kernel's osnoise tracer ------------------------------------------------ */

static const struct tracepoint {
	const char *name;
	enum coll_noise_cause cause;
} tracepoints[] = {
	{ " nmi_noise: ", COLL_NOISE_NMI },
	{ " irq_noise: ", COLL_NOISE_IRQ },
	{ " softirq_noise: ", COLL_NOISE_SOFTIRQ },
	{ " thread_noise: ", COLL_NOISE_THREAD },
	{ " sample_threshold: ", COLL_NOISE_HARDWARE },
};

/* What comes after the tracepoint's name, which is of an event of this cause. */
static const char *find_body(const char *line, u8 *cause)
{
	const char *found;
	size_t i;

	for (i = 0; i < sizeof(tracepoints) / sizeof(*tracepoints); i++) {
		found = strstr(line, tracepoints[i].name);
		*cause = tracepoints[i].cause;
		if (found)
			return found + strlen(tracepoints[i].name);
	}
	return NULL;
}

/* "local_timer:236 start ", or without a name. NULL: neither. */
static const char *read_name(const char *body, struct coll_noise_traced *traced)
{
	const char *at = body, *next, *colon;

	if (!strncmp(body, "start ", 6))
		return body + 6;
	for (next = strstr(body, " start "); next; next = strstr(next + 1, " start "))
		at = next + 1;	/* the last: names may hold anything */
	if (at == body)
		return NULL;
	colon = memrchr(body, ':', at - body);
	if (!colon || !isdigit((unsigned char)colon[1]))
		return NULL;
	traced->number = strtoul(colon + 1, NULL, 10);
	snprintf(traced->name, sizeof(traced->name), "%.*s", (int)(colon - body), body);
	return at + 6;
}

/* "5789.857529929 duration 1845 ns interference 2" */
static bool read_times(const char *at, struct coll_noise_traced *traced)
{
	at = coll_text_scaled(at, 1000000000, &traced->start);
	if (!at || strncmp(at, " duration ", 10))
		return false;
	at = coll_text_scaled(at + 10, 1, &traced->duration);
	if (!at || strncmp(at, " ns", 3))
		return false;
	traced->interference = strtoul(at + 3 + strcspn(at + 3, "0123456789"), NULL, 10);
	return true;
}

/* "osnoise/8-961 [008] d.h. ..." */
static bool read_cpu(const char *line, u32 *cpu)
{
	const char *open = strchr(line, '[');

	for (; open; open = strchr(open + 1, '[')) {
		char *rest;
		const unsigned long value = strtoul(open + 1, &rest, 10);

		if (rest > open + 1 && *rest == ']' && value <= UINT16_MAX) {
			*cpu = value;
			return true;
		}
	}
	return false;
}

int coll_noise_traced(const char *line, struct coll_noise_traced *traced)
{
	const char *body;

	*traced = (struct coll_noise_traced){ 0 };
	body = find_body(line, &traced->cause);
	if (!body)
		return 0;
	body = read_name(skip_space(body), traced);
	return body && read_times(body, traced) && read_cpu(line, &traced->cpu) ? 1 : -EINVAL;
}
