// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Models of noise are read as they are printed, files as others write them; nonsense is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/noise/text.h"

static struct coll_noise_said said;
static struct coll_text_error error;

static const struct coll_noise_model *read_as(const char *text)
{
	coll_noise_said_free(&said);
	if (coll_noise_parse(text, 1, &said, &error))
		fail_msg("%s: %s", text, error.reason);
	return &said.model;
}

static void refused(const char *text, const char *reason)
{
	coll_noise_said_free(&said);
	assert_int_equal(coll_noise_parse(text, 1, &said, &error), -EINVAL);
	if (!strstr(error.reason, reason))
		fail_msg("'%s' should be refused with '%s', but: %s", text, reason, error.reason);
}

static void times_are_read(void **state)
{
	static const struct {
		const char *text;
		u64 ns;
	} good[] = {
		{ "1", 1000000000 }, { "250us", 250000 }, { "2.5ms", 2500000 }, { "7ns", 7 },
		{ "1h", 3600000000000 }, { ".5s", 500000000 }, { "0", 0 }, { "1e-3", 1000000 }, { "1d", 86400000000000 },
	};
	static const char *const bad[] = { "", "-1", " 1", "0x10", "1e", "1 ms", "ms", "nan",
					   "inf", "1.2.3", "1000000d" };
	unsigned int i;
	u64 ns;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(coll_text_time(good[i].text, 1000000000, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (coll_text_time(bad[i], 1, &ns))
			fail_msg("'%s' was read", bad[i]);
}

static void models_are_read(void **state)
{
	const struct coll_noise_model *model;

	(void)state;
	model = read_as("periodic:period=10ms,duration=250us");
	assert_int_equal(model->arrival, COLL_NOISE_PERIODIC);
	assert_int_equal(model->phase, COLL_NOISE_RANDOM);
	assert_int_equal(model->length, COLL_NOISE_FIXED);
	assert_int_equal(model->period, 10000000);
	assert_int_equal(model->duration, 250000);
	assert_int_equal(model->seed, 1);

	model = read_as("poisson:rate=40,duration=50us,length=pareto,shape=1.5,longest=10ms,"
			"phase=same,seed=18446744073709551615");
	assert_int_equal(model->arrival, COLL_NOISE_POISSON);
	assert_int_equal(model->phase, COLL_NOISE_SAME);
	assert_int_equal(model->length, COLL_NOISE_PARETO);
	assert_int_equal(model->period, 25000000);
	assert_int_equal(model->shape, 1500);
	assert_int_equal(model->longest, 10000000);
	assert_true(model->seed == ~0ull);

	model = read_as("periodic:rate=1000,duration=25us,phase=staggered,streams=8");
	assert_int_equal(model->phase, COLL_NOISE_STAGGERED);
	assert_int_equal(model->streams, 8);
}

static void what_is_printed_is_read_back(void **state)
{
	static const char *const texts[] = {
		"periodic:period=10ms,duration=250us,phase=random,seed=7",
		"periodic:period=1s,duration=7ns,phase=staggered,streams=3,seed=1",
		"poisson:period=1001us,duration=50us,length=pareto,shape=1.5,longest=10ms,"
		"phase=same,seed=2",
		"poisson:period=100s,duration=5ms,length=exponential,phase=random,seed=0",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct coll_noise_plan plan;
		char *text;
		size_t bytes;
		FILE *to = open_memstream(&text, &bytes);

		read_as(texts[i]);
		plan = coll_noise_said_plan(&said);
		coll_noise_print(&plan, to);
		fclose(to);
		assert_string_equal(text, texts[i]);
		free(text);
	}
}

static void wrong_models_are_refused(void **state)
{
	(void)state;
	refused("", "'' is not periodic, poisson or replay");
	refused("sometimes:period=1s", "'sometimes' is not periodic, poisson or replay");
	refused("periodic", "needs period or rate");
	refused("periodic:duration=1ms", "needs period or rate");
	refused("periodic:period=1s", "needs duration");
	refused("periodic:period=1s,duration", "duration '' is not a time");
	refused("periodic:period=1s,duration=1min", "duration '1min' is not a time from 1ns");
	refused("periodic:period=0,duration=1ms", "period '0' is not a time");
	refused("periodic:period=1s,length=normal", "length 'normal' is not fixed, exponential");
	refused("periodic:period=1s,colour=red", "there is no 'colour'; valid: period, rate");
	refused("periodic:period=1s,duration=1ms,phase=odd", "phase 'odd' is not same, random");
	refused("periodic:period=1s,duration=1ms,seed=-1", "seed '-1' is not a whole number");
	refused("periodic:period=1s,duration=1ms,cpu=1", "cpu chooses from a file");
	refused("periodic:period=1ms,duration=1ms", "more than 95 %");
	refused("poisson:rate=0,duration=1ms", "rate '0' is not events a second");
	refused("poisson:rate=2e6,duration=1ns", "rate '2e6' is not events a second");
	refused("poisson:rate=1,duration=1ms,length=pareto,shape=0.5", "shape: above 1");
	refused("poisson:rate=1,duration=1ms,phase=staggered", "phase: Poisson has no period");
	refused("replay", "replay needs a file");
	refused("replay:/nonexistent/file", "cannot read /nonexistent/file: No such file");
	refused("poisson:rate=1,table=", "table '' is not a file");
}

/* ---- files -------------------------------------------------------------------- */

static char *file_of(const void *bytes, size_t count)
{
	static char path[64];
	int fd;

	strcpy(path, "/tmp/text_noise_test.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	close(fd);
	return path;
}

static const struct coll_noise_model *read_file(const char *before, const void *bytes, size_t count,
						const char *after)
{
	char text[128], *path = file_of(bytes, count);
	const struct coll_noise_model *model;

	snprintf(text, sizeof(text), "%s%s%s", before, path, after);
	model = read_as(text);
	unlink(path);
	return model;
}

static void refused_file(const void *bytes, size_t count, const char *after, const char *reason)
{
	char text[128], *path = file_of(bytes, count);

	snprintf(text, sizeof(text), "replay:%s%s", path, after);
	refused(text, reason);
	unlink(path);
}

static void span_is(u32 i, u64 start, u64 duration)
{
	assert_int_equal(said.table[i].start, start);
	assert_int_equal(said.table[i].duration, duration);
}

static void netgauge_files_are_read(void **state)
{
	static const char text[] = "# Minimal cycle length [ns]: 20.00\n# Time [ns]\tduration\n"
				   "100.00\t10.40\n\n20000.60\t50.00 # long\n30000\t100\n";

	(void)state;
	assert_int_equal(read_file("replay:", text, strlen(text), "")->period, 30100);
	assert_int_equal(said.spans, 3);
	span_is(0, 100, 10);
	span_is(1, 20001, 50);
	span_is(2, 30000, 100);
	assert_int_equal(read_file("replay:", text, strlen(text), ",period=1ms")->period, 1000000);
	read_file("poisson:rate=10,table=", text, strlen(text), "");
	assert_int_equal(said.model.length, COLL_NOISE_TABLE);
	span_is(2, 0, 100);
}

static void osnoise_traces_are_read(void **state)
{
	static const char text[] =
		"# tracer: osnoise\n"
		"  osnoise/8-960 [008] d.h. 5789.857532: irq_noise: local_timer:236 start "
		"5789.857529929 duration 1845 ns\n"
		"  osnoise/9-961 [009] d.h. 5789.857532: irq_noise: local_timer:236 start "
		"5789.857529111 duration 99 ns\n"
		"  osnoise/8-960 [008] .... 5789.858408: thread_noise: migration/8:54 start "
		"5789.857529000 duration 3068 ns\n"
		"  osnoise/8-960 [008] .... 5789.858413: sample_threshold: start 5789.858404871 "
		"duration 8812 ns interferences 2\n"
		"  osnoise/8-960 [008] .... 5790.000000: sample_threshold: start 5789.857539000 "
		"duration 700 ns interferences 0\n"
		"  osnoise/8-960 [008] .... 5790.000001: thread_noise: odd #1:54 start "
		"5789.857549000 duration 2.5 ns\n";

	(void)state;
	read_file("replay:", text, strlen(text), ",period=1ms");
	assert_int_equal(said.spans, 4);	/* the gap with two parts is these two */
	span_is(2, 10000, 700);
	span_is(3, 20000, 3);
	span_is(0, 0, 3068);
	span_is(1, 929, 1845);
	read_file("replay:", text, strlen(text), ",cpu=9,period=1s");
	assert_int_equal(said.spans, 1);
	span_is(0, 0, 99);
	refused_file(text, strlen(text), ",cpu=10", "has no events of CPU 10");
}

static struct {
	struct coll_noise_capture head;
	struct coll_noise_cpu cpu[2];
	struct coll_noise_source source;
	struct coll_noise_event event[3];
} capture = {
	.head = { .magic = COLL_NOISE_MAGIC, .version = COLL_NOISE_VERSION, .cpus = 2,
		  .sources = 1, .events = 3 },
	.cpu = { { .cpu = 2, .first = 1000, .watched = 500000, .events = 1 },
		 { .cpu = 5, .first = 2000, .watched = 900000, .events = 2 } },
	.event = { { .start = 3000, .duration = 7, .cpu = 2 },
		   { .start = 2000, .duration = 8, .cpu = 5 },
		   { .start = 4000, .duration = 9, .cpu = 5 } },
};

static void captures_are_read(void **state)
{
	(void)state;
	assert_int_equal(read_file("replay:", &capture, sizeof(capture), "")->period, 500000);
	assert_int_equal(said.spans, 1);
	span_is(0, 2000, 7);
	assert_int_equal(read_file("replay:", &capture, sizeof(capture), ",cpu=5")->period, 900000);
	assert_int_equal(said.spans, 2);
	span_is(0, 0, 8);
	span_is(1, 2000, 9);
	refused_file(&capture, sizeof(capture), ",cpu=3", "has no events of CPU 3");
	refused_file(&capture, sizeof(capture) - 1, "", "cut short");
	refused_file(&capture, sizeof(capture.head) + 9, "", "cut short");
	capture.event[0].start = 1;
	refused_file(&capture, sizeof(capture), "", "event 0 is outside the time watched");
	capture.head.version = 9;
	refused_file(&capture, sizeof(capture), "", "a capture of version 9; valid: 2");
}

static void bad_files_are_refused(void **state)
{
	static const char *const texts[][2] = {
		{ "100 10\n99 10\n", "line 2 starts before" },
		{ "100\n", "line 1 is not 'start_ns duration_ns'" },
		{ "100 10 10\n", "line 1 is not" },
		{ "-100 10\n", "line 1 is not" },
		{ "nan 10\n", "line 1 is not" },
		{ "0 1e300\n", "line 1 is not" },
		{ "# nothing\n", "has no events" },
		{ "a-1 [000] irq_noise: x start 5 duration 3 ns\n", "line 1 has no 'start S.NS" },
		{ "0 1000000\n", "more than 95 %" },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refused_file(texts[i][0], strlen(texts[i][0]), "", texts[i][1]);
}

static int forget(void **state)
{
	(void)state;
	coll_noise_said_free(&said);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read),
		cmocka_unit_test_teardown(models_are_read, forget),
		cmocka_unit_test_teardown(what_is_printed_is_read_back, forget),
		cmocka_unit_test_teardown(wrong_models_are_refused, forget),
		cmocka_unit_test_teardown(netgauge_files_are_read, forget),
		cmocka_unit_test_teardown(osnoise_traces_are_read, forget),
		cmocka_unit_test_teardown(captures_are_read, forget),
		cmocka_unit_test_teardown(bad_files_are_refused, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
