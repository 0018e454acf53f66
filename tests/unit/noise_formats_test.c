// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Captures as files, and the formats of other tools: there and back, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/capture.c"
#include "tools/noise/figures.c"
#define wrong format_wrong
#include "tools/noise/formats.c"

const char *argument_program = "test";

static u64 random_state = 1;

static u64 some(u64 below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 33) % below;
}

/* Events of three CPUs, some of them with a cause and a name. */
static struct node_capture sample(void)
{
	static const char *const names[] = { "local_timer", "RCU", "kworker/0:1", "a b: \"c\"" };
	struct node_capture capture;
	u32 cpu, i, source;

	node_capture_init(&capture);
	capture.head.threshold = 200;
	capture.head.epoch = 1700000000123456789ull;
	for (cpu = 0; cpu < 3; cpu++) {
		const struct coll_noise_cpu entry = { .cpu = 2 * cpu, .watched = 2000000000,
						      .loop = 10220, .lost = cpu };
		u64 at = 1000;

		node_capture_add_cpu(&capture, &entry);
		for (i = 0; i < 100; i++) {
			const u32 cause = COLL_NOISE_HARDWARE + some(6);
			const u64 length = 50 + some(100000);
			const bool named = cause >= COLL_NOISE_IRQ && cause <= COLL_NOISE_THREAD;

			source = 0;
			if (named)
				node_capture_source(&capture, cause, some(3), names[some(4)],
						    &source);
			node_capture_add_event(&capture, at, length, 2 * cpu, cause, source);
			at += length + 1 + some(19000000);
		}
	}
	assert_int_equal(node_capture_finish(&capture), 0);
	return capture;
}

static char *printed(const struct node_capture *capture, enum noise_format format, u32 cpu,
		     size_t *bytes)
{
	char *text;
	FILE *to = open_memstream(&text, bytes);

	assert_int_equal(noise_format_print(capture, format, cpu, 1000000, to), 0);
	fclose(to);
	return text;
}

static int parsed(const void *text, size_t bytes, struct node_capture *capture,
		  struct coll_text_error *error)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	int status;

	*capture = (struct node_capture){ 0 };
	node_capture_init(capture);
	status = noise_format_parse(text, bytes, &any, capture, error);
	return status ? status : node_capture_finish(capture);
}

/* ---- there and back ------------------------------------------------------------------------ */

static void capture_comes_back(void **state)
{
	struct node_capture capture = sample(), back;
	struct coll_text_error error;
	size_t bytes, again;
	char *data = printed(&capture, NOISE_CAPTURE, 0, &bytes), *other;

	(void)state;
	assert_int_equal(parsed(data, bytes, &back, &error), 0);
	other = printed(&back, NOISE_CAPTURE, 0, &again);
	assert_int_equal(bytes, again);
	assert_memory_equal(data, other, bytes);
	/* What was read can be added to. */
	assert_int_equal(node_capture_add_event(&back, 1, 2, 9, COLL_NOISE_UNKNOWN, 0), 0);
	assert_int_equal(node_capture_finish(&back), 0);
	assert_int_equal(back.head.cpus, 4);
	node_capture_free(&back);
	node_capture_free(&capture);
	free(data);
	free(other);
}

static void damaged_captures_are_refused(void **state)
{
	struct node_capture capture = sample(), back;
	struct coll_text_error error;
	size_t bytes, i, refused = 0;
	char *data = printed(&capture, NOISE_CAPTURE, 0, &bytes);
	static const struct {
		size_t at;
		u8 value;
	} damage[] = {
		{ 8, COLL_NOISE_VERSION + 1 },
		{ 12, 200 },	/* the number of CPUs, */
		{ 16, 77 },	/* of sources, */
		{ 27, 1 },	/* of events */
		{ 20, 1 },	/* padding */
		{ sizeof(struct coll_noise_capture) + 24, 1 },	/* a CPU's events */
	};

	(void)state;
	for (i = 0; i < sizeof(damage) / sizeof(*damage); i++) {
		const char was = data[damage[i].at];

		data[damage[i].at] = damage[i].value;
		assert_int_equal(parsed(data, bytes, &back, &error), -EINVAL);
		assert_true(error.reason[0]);
		data[damage[i].at] = was;
	}
	for (i = 8; i < bytes; i += 37) {
		assert_int_equal(node_capture_parse(data, i, &back, &error), -EINVAL);
		refused++;
	}
	assert_true(refused > 100);
	node_capture_free(&capture);
	free(data);
}

static void netgauge_comes_back(void **state)
{
	struct node_capture capture = sample(), back;
	struct coll_text_error error;
	const struct coll_noise_event *was = node_capture_events(&capture, 1);
	size_t bytes;
	char *text = printed(&capture, NOISE_NETGAUGE, 1, &bytes);
	u32 i;

	(void)state;
	assert_int_equal(parsed(text, bytes, &back, &error), 0);
	assert_int_equal(back.head.cpus, 1);
	assert_int_equal(back.head.events, 100);
	assert_int_equal(back.cpu[0].watched, 2000000000);
	for (i = 0; i < 100; i++) {
		assert_int_equal(back.event[i].start, was[i].start);
		assert_int_equal(back.event[i].duration, was[i].duration);
	}
	node_capture_free(&back);
	node_capture_free(&capture);
	free(text);
}

static void osnoise_comes_back(void **state)
{
	struct node_capture capture = sample(), back;
	struct coll_text_error error;
	size_t bytes;
	char *text = printed(&capture, NOISE_OSNOISE, 0, &bytes);
	u64 i;

	(void)state;
	assert_int_equal(parsed(text, bytes, &back, &error), 0);
	assert_int_equal(back.head.events, capture.head.events);
	for (i = 0; i < back.head.events; i++) {
		const struct coll_noise_event *a = &capture.event[i], *b = &back.event[i];

		/* Counted from the first event; causes that osnoise has no word for are hardware.
		 */
		assert_int_equal(b->start, a->start - 1000);
		assert_int_equal(b->duration, a->duration);
		assert_int_equal(b->cpu, a->cpu);
		assert_int_equal(b->cause, a->cause < COLL_NOISE_NMI ? COLL_NOISE_HARDWARE :
								       a->cause);
		if (a->source) {
			assert_string_equal(back.source[b->source - 1].name,
					    capture.source[a->source - 1].name);
			assert_int_equal(back.source[b->source - 1].number,
					 capture.source[a->source - 1].number);
		}
	}
	node_capture_free(&back);
	node_capture_free(&capture);
	free(text);
}

/* FTQ keeps how much of each quantum was taken. */
static void ftq_keeps_the_share(void **state)
{
	struct node_capture capture = sample(), back;
	struct coll_text_error error;
	struct noise_summary before, after;
	size_t bytes;
	char *text = printed(&capture, NOISE_FTQ, 2, &bytes);

	(void)state;
	assert_int_equal(parsed(text, bytes, &back, &error), 0);
	noise_summary(&capture, 2, &before);
	noise_summary(&back, 0, &after);
	assert_int_equal(after.length.total, before.length.total);
	assert_int_equal(after.watched, before.watched);
	node_capture_free(&back);
	node_capture_free(&capture);
	free(text);
}

/* ---- what others write -------------------------------------------------- */

/* The example of the tracer's documentation: a timer and a thread inside one gap. */
static const char trace[] =
	"# tracer: osnoise\n"
	"#                                _-----=> irqs-off\n"
	"         osnoise/8-961     [008] d.h.  5789.857532: irq_noise: local_timer:236 start "
	"5789.857529929 duration 1845 ns\n"
	"         osnoise/8-961     [008] d.h.  5789.858408: irq_noise: local_timer:236 start "
	"5789.858404871 duration 2848 ns\n"
	"       migration/8-54      [008] d...  5789.858413: thread_noise: migration/8:54 start "
	"5789.858409300 duration 3068 ns\n"
	"         osnoise/8-961     [008] ....  5789.858413: sample_threshold: start "
	"5789.858404555 duration 8812 ns interferences 2\n"
	"         osnoise/8-961     [008] ....  5789.900000: sample_threshold: start "
	"5789.899990000 duration 9000 ns interferences 0\n"
	"         osnoise/9-962     [009] d...  5789.900010: nmi_noise: start 5789.900000001 "
	"duration 700 ns\n"
	"         osnoise/9-962     [009] ..s.  5789.900020: softirq_noise:      RCU:9 start "
	"5789.900010000 duration 50 ns\n";

static void osnoise_is_understood(void **state)
{
	const struct noise_import gaps = { .format = NOISE_OSNOISE, .samples = true };
	struct node_capture capture;
	struct coll_text_error error;

	(void)state;
	assert_int_equal(parsed(trace, sizeof(trace) - 1, &capture, &error), 0);
	assert_int_equal(capture.head.events, 6);
	assert_int_equal(capture.head.cpus, 2);
	assert_int_equal(capture.event[0].start, 0);
	assert_int_equal(capture.event[1].start, 874942);
	assert_int_equal(capture.event[1].duration + capture.event[2].duration, 2848 + 3068);
	assert_int_equal(capture.event[2].cause, COLL_NOISE_THREAD);
	assert_string_equal(capture.source[capture.event[2].source - 1].name, "migration/8");
	assert_int_equal(capture.source[capture.event[2].source - 1].number, 54);
	assert_int_equal(capture.event[3].cause, COLL_NOISE_HARDWARE);
	assert_int_equal(capture.event[4].cause, COLL_NOISE_NMI);
	assert_string_equal(capture.source[capture.event[5].source - 1].name, "RCU");
	node_capture_free(&capture);

	node_capture_init(&capture);
	assert_int_equal(noise_format_parse(trace, sizeof(trace) - 1, &gaps, &capture, &error), 0);
	node_capture_finish(&capture);
	assert_int_equal(capture.head.events, 2);
	assert_int_equal(capture.event[0].duration, 8812);
	node_capture_free(&capture);
}

static void numbers_are_exact(void **state)
{
	static const char text[] = "# comment\n\n 4611686018427387.25\t12.5\n7 0.4\r\n";
	struct node_capture capture;
	struct coll_text_error error;

	(void)state;
	assert_int_equal(parsed(text, sizeof(text) - 1, &capture, &error), 0);
	assert_int_equal(capture.head.events, 2);
	assert_int_equal(capture.event[0].start, 7);
	assert_int_equal(capture.event[0].duration, 0);
	assert_int_equal(capture.event[1].start, 4611686018427387ull);
	assert_int_equal(capture.event[1].duration, 13);
	node_capture_free(&capture);
}

static void wrong_lines_are_named(void **state)
{
	static const struct {
		const char *text;
		u32 line;
		const char *says;
	} cases[] = {
		{ "1 2\n3\n", 2, "start duration" },
		{ "1 2\n# x\n3 4 5\n", 3, "start duration" },
		{ "-1 2\n", 1, "start duration" },
		{ "99999999999999999999 2\n", 1, "start duration" },
		{ "1 nan\n", 1, "start duration" },
		{ "# Ticks per ns: 1\n1 2\n1 3\n", 3, "times rising" },
		{ "# Ticks per ns: 1\n1 2\n", 2, "two lines" },
		{ "x [001] a irq_noise: local_timer start 1.0 duration 1 ns\n", 1,
		  "not an osnoise event" },
		{ "x a irq_noise: local_timer:1 start 1.0 duration 1 ns\n", 1,
		  "not an osnoise event" },
		{ "x [001] thread_noise: a:1 start 1.0 duration\n", 1,
		  "not an osnoise event" },
	};
	struct node_capture capture;
	struct coll_text_error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parsed(cases[i].text, strlen(cases[i].text), &capture, &error),
				 -EINVAL);
		assert_int_equal(error.line, cases[i].line);
		assert_non_null(strstr(error.reason, cases[i].says));
		node_capture_free(&capture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capture_comes_back),
		cmocka_unit_test(damaged_captures_are_refused),
		cmocka_unit_test(netgauge_comes_back),
		cmocka_unit_test(osnoise_comes_back),
		cmocka_unit_test(ftq_keeps_the_share),
		cmocka_unit_test(osnoise_is_understood),
		cmocka_unit_test(numbers_are_exact),
		cmocka_unit_test(wrong_lines_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
