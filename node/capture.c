// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture.h"

static const char *const causes[] = {
	[COLL_NOISE_UNKNOWN] = "unknown",   [COLL_NOISE_HARDWARE] = "hardware",
	[COLL_NOISE_STEAL] = "steal",	    [COLL_NOISE_NMI] = "nmi",
	[COLL_NOISE_IRQ] = "irq",	    [COLL_NOISE_SOFTIRQ] = "softirq",
	[COLL_NOISE_THREAD] = "thread",	    [COLL_NOISE_INJECTED] = "injected",
};

const char *node_cause_name(u32 cause)
{
	return cause < COLL_NOISE_CAUSES ? causes[cause] : "?";
}

void node_capture_init(struct node_capture *capture)
{
	struct utsname name;

	*capture = (struct node_capture){
		.head = { .magic = COLL_NOISE_MAGIC, .version = COLL_NOISE_VERSION },
	};
	if (uname(&name))
		return;
	snprintf(capture->head.host, sizeof(capture->head.host), "%.63s", name.nodename);
	snprintf(capture->head.kernel, sizeof(capture->head.kernel), "%.63s", name.release);
}

void node_capture_free(struct node_capture *capture)
{
	free(capture->cpu);
	free(capture->source);
	free(capture->event);
	*capture = (struct node_capture){ 0 };
}

/* ---- names ---------------------------------------------------------------- */

/* The length of the printable character of UTF-8 that `text` begins with; 0: it is none. */
static u32 character_bytes(const char *text)
{
	static const u32 least[] = { 0, ' ', 0x80, 0x800, 0x10000 };
	const u8 *byte = (const u8 *)text;
	const u32 bytes = *byte < 0x80 ? 1 : *byte < 0xc0 ? 0 : *byte < 0xe0 ? 2 : *byte < 0xf0 ? 3 :
			  *byte < 0xf8 ? 4 : 0;
	u32 code = bytes < 2 ? *byte : *byte & (0x7f >> bytes), i;

	for (i = 1; i < bytes; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (byte[i] & 0x3f);
	}
	return bytes && code >= least[bytes] && code <= 0x10ffff && (code < 0x7f || code >= 0xa0) &&
	       (code & 0xfff800) != 0xd800 && (code & 0xfffe) != 0xfffe ? bytes : 0;
}

void node_make_printable(char *text)
{
	while (*text) {
		const u32 bytes = character_bytes(text);

		if (!bytes)
			*text = '?';
		text += bytes ? bytes : 1;
	}
}

/* ---- adding --------------------------------------------------------------- */

/* Room for one more behind `count`: full at powers of two. */
static int capture_grow(void *array, u64 count, size_t bytes)
{
	void **memory = array, *more;

	if (count & (count - 1))
		return 0;
	more = reallocarray(*memory, count ? 2 * count : 1, bytes);
	if (!more)
		return -ENOMEM;
	*memory = more;
	return 0;
}

int node_capture_add_cpu(struct node_capture *capture, const struct coll_noise_cpu *cpu)
{
	if (capture_grow(&capture->cpu, capture->head.cpus, sizeof(*cpu)))
		return -ENOMEM;
	capture->cpu[capture->head.cpus++] = *cpu;
	return 0;
}

int node_capture_add_source(struct node_capture *capture, const struct coll_noise_source *source)
{
	struct coll_noise_source *to;

	if (capture_grow(&capture->source, capture->head.sources, sizeof(*source)))
		return -ENOMEM;
	to = &capture->source[capture->head.sources++];
	*to = *source;
	memset(to->zero, 0, sizeof(to->zero));
	node_make_printable(to->name);
	return 0;
}

int node_capture_add_event(struct node_capture *capture, u64 start, u64 duration, u32 cpu,
			   enum coll_noise_cause cause, u32 source)
{
	if (capture_grow(&capture->event, capture->head.events, sizeof(*capture->event)))
		return -ENOMEM;
	capture->event[capture->head.events++] = (struct coll_noise_event){
		.start = start, .duration = duration, .source = source, .cpu = cpu, .cause = cause,
	};
	return 0;
}

int node_capture_source(struct node_capture *capture, enum coll_noise_cause cause, u32 number,
			const char *name, u32 *source)
{
	struct coll_noise_source new = { .cause = cause, .number = number };

	strncpy(new.name, name, sizeof(new.name) - 1);
	node_make_printable(new.name);
	for (*source = 1; *source <= capture->head.sources; ++*source) {
		const struct coll_noise_source *old = &capture->source[*source - 1];

		if (old->cause == new.cause && old->number == new.number &&
		    !strcmp(old->name, new.name))
			return 0;
	}
	return node_capture_add_source(capture, &new);
}

/* ---- in order ------------------------------------------------------------- */

static int by_cpu(const void *a, const void *b)
{
	const struct coll_noise_cpu *x = a, *y = b;

	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int by_cpu_and_start(const void *a, const void *b)
{
	const struct coll_noise_event *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static struct coll_noise_cpu *find_cpu(const struct node_capture *capture, u32 cpu)
{
	const struct coll_noise_cpu key = { .cpu = cpu };

	return capture->head.cpus ? bsearch(&key, capture->cpu, capture->head.cpus, sizeof(key),
					    by_cpu) : NULL;
}

/* Events are in order. */
static int add_missing(struct node_capture *capture)
{
	const u32 known = capture->head.cpus;
	u64 i;

	for (i = 0; i < capture->head.events; i++) {
		const struct coll_noise_event *event = &capture->event[i];
		const struct coll_noise_cpu cpu = { .cpu = event->cpu, .first = event->start };

		if ((!i || event[-1].cpu != event->cpu) && !find_cpu(capture, event->cpu) &&
		    node_capture_add_cpu(capture, &cpu))
			return -ENOMEM;
		if (capture->head.cpus > known &&
		    capture->cpu[capture->head.cpus - 1].cpu == event->cpu) {
			struct coll_noise_cpu *to = &capture->cpu[capture->head.cpus - 1];
			const u64 watched = event->start + event->duration - to->first;

			to->watched = watched > to->watched ? watched : to->watched;
		}
	}
	qsort(capture->cpu, capture->head.cpus, sizeof(*capture->cpu), by_cpu);
	return 0;
}

int node_capture_finish(struct node_capture *capture)
{
	u64 i;
	u32 c;

	if (capture->head.cpus)
		qsort(capture->cpu, capture->head.cpus, sizeof(*capture->cpu), by_cpu);
	if (!capture->head.events)
		return 0;
	qsort(capture->event, capture->head.events, sizeof(*capture->event), by_cpu_and_start);
	if (add_missing(capture))
		return -ENOMEM;
	for (c = 0; c < capture->head.cpus; c++)
		capture->cpu[c].events = 0;
	for (i = 0; i < capture->head.events; i++)
		find_cpu(capture, capture->event[i].cpu)->events++;
	return 0;
}

const struct coll_noise_event *node_capture_events(const struct node_capture *capture, u32 index)
{
	u64 before = 0;

	while (index--)
		before += capture->cpu[index].events;
	return capture->event + before;
}

/* ---- files ---------------------------------------------------------------- */

static bool capture_put(const void *data, size_t bytes, u64 count, FILE *to)
{
	return !count || fwrite(data, bytes, count, to) == count;
}

int node_capture_write(const struct node_capture *capture, FILE *to)
{
	const struct coll_noise_capture *head = &capture->head;

	return capture_put(head, sizeof(*head), 1, to) &&
	       capture_put(capture->cpu, sizeof(*capture->cpu), head->cpus, to) &&
	       capture_put(capture->source, sizeof(*capture->source), head->sources, to) &&
	       capture_put(capture->event, sizeof(*capture->event), head->events, to) &&
	       !fflush(to) ? 0 : -errno;
}

__attribute__((format(printf, 2, 3)))
static int capture_wrong(struct coll_text_error *error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(error->reason, sizeof(error->reason), format, list);
	va_end(list);
	error->line = 0;
	return -EINVAL;
}

static int check_head(const struct coll_noise_capture *head, size_t bytes,
		      struct coll_text_error *error)
{
	const u64 fixed = sizeof(*head) + (u64)head->cpus * sizeof(struct coll_noise_cpu) +
			  (u64)head->sources * sizeof(struct coll_noise_source);

	if (head->magic != COLL_NOISE_MAGIC)
		return capture_wrong(error, "not a capture");
	if (head->version != COLL_NOISE_VERSION)
		return capture_wrong(error, "a capture of version %u; this is version %u",
				     head->version, COLL_NOISE_VERSION);
	if (head->zero || head->host[sizeof(head->host) - 1] ||
	    head->kernel[sizeof(head->kernel) - 1])
		return capture_wrong(error, "the header is damaged");
	if (fixed > bytes || head->events > bytes ||
	    fixed + head->events * sizeof(struct coll_noise_event) != bytes)
		return capture_wrong(
			error, "%zu bytes do not hold %u CPUs, %u sources and %llu events", bytes,
			head->cpus, head->sources, (unsigned long long)head->events);
	return 0;
}

static int check_source(const struct coll_noise_source *source, u32 index,
			struct coll_text_error *error)
{
	if (source->cause >= COLL_NOISE_CAUSES || source->zero[0] || source->zero[1] ||
	    source->zero[2] || source->name[sizeof(source->name) - 1])
		return capture_wrong(error, "source %u is damaged", index);
	return 0;
}

static int check_events(const struct node_capture *capture, struct coll_text_error *error)
{
	u64 i = 0, end;
	u32 c;

	for (c = 0; c < capture->head.cpus; c++) {
		const struct coll_noise_cpu *cpu = &capture->cpu[c];

		if (cpu->cpu > UINT16_MAX || (c && cpu->cpu <= cpu[-1].cpu))
			return capture_wrong(error, "CPU %u is out of order", cpu->cpu);
		if (cpu->first + cpu->watched < cpu->first)
			return capture_wrong(error, "CPU %u was watched for ever", cpu->cpu);
		if (cpu->events > capture->head.events - i)
			return capture_wrong(error, "CPU %u has more events than there are",
					     cpu->cpu);
		for (end = i + cpu->events; i < end; i++) {
			const struct coll_noise_event *event = &capture->event[i];

			if (event->cpu != cpu->cpu || event->cause >= COLL_NOISE_CAUSES ||
			    event->source > capture->head.sources || event->zero ||
			    event->start + event->duration < event->start ||
			    (i > end - cpu->events && event->start < event[-1].start))
				return capture_wrong(error, "event %llu is damaged or out of order",
						     (unsigned long long)i);
		}
	}
	return i == capture->head.events ? 0 : capture_wrong(error, "events of no CPU");
}

/* The next array of the file, copied; room is what `grow` would have made. */
static const u8 *take_array(void *array, const u8 *from, u64 count, size_t bytes)
{
	void **memory = array;
	u64 room = 1;

	while (room < count)
		room *= 2;
	*memory = calloc(room, bytes);
	if (*memory && count)
		memcpy(*memory, from, count * bytes);
	return *memory ? from + count * bytes : NULL;
}

static int take_all(const u8 *from, struct node_capture *capture)
{
	from = take_array(&capture->cpu, from, capture->head.cpus, sizeof(*capture->cpu));
	if (from)
		from = take_array(&capture->source, from, capture->head.sources,
				  sizeof(*capture->source));
	if (from)
		from = take_array(&capture->event, from, capture->head.events,
				  sizeof(*capture->event));
	return from ? 0 : -ENOMEM;
}

int node_capture_parse(const void *data, size_t bytes, struct node_capture *capture,
		       struct coll_text_error *error)
{
	int status;
	u32 i;

	*capture = (struct node_capture){ 0 };
	if (bytes < sizeof(capture->head))
		return capture_wrong(error, "not a capture: %zu bytes are too few", bytes);
	memcpy(&capture->head, data, sizeof(capture->head));
	status = check_head(&capture->head, bytes, error);
	if (!status) {
		node_make_printable(capture->head.host);
		node_make_printable(capture->head.kernel);
		status = take_all((const u8 *)data + sizeof(capture->head), capture);
	}
	for (i = 0; !status && i < capture->head.sources; i++) {
		status = check_source(&capture->source[i], i, error);
		if (!status)
			node_make_printable(capture->source[i].name);
	}
	if (!status)
		status = check_events(capture, error);
	if (status)
		node_capture_free(capture);
	return status;
}
