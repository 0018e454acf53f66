// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What colld has stopped stays written down until it has been resumed; and whether a job runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "daemon/policy/jobs.c"
#include "daemon/policy/stopped.c"

static char folder[] = "/tmp/coll-stopped.XXXXXX";
static struct colld_stopped stopped;

/* Of the file; "": there is none. */
static const char *text_of_file(void)
{
	static char text[4096];
	FILE *from = fopen(stopped.path, "r");
	size_t length = from ? fread(text, 1, sizeof(text) - 1, from) : 0;

	text[length] = 0;
	if (from)
		fclose(from);
	return text;
}

static void add(const char *what)
{
	const int lock = colld_stopped_lock(&stopped);

	assert_true(lock >= 0);
	assert_int_equal(colld_stopped_add(&stopped, what), 0);
	colld_stopped_unlock(lock);
}

struct resumed {
	const char *refused;	/* of which it fails; NULL: of none */
	char text[256];		/* what it was called for */
};

static int resume(const char *what, void *data)
{
	struct resumed *resumed = data;

	snprintf(resumed->text + strlen(resumed->text), sizeof(resumed->text) - strlen(resumed->text), "%s ", what);
	return resumed->refused && !strcmp(what, resumed->refused) ? -ETIMEDOUT : 0;
}

static void nothing_is_made_where_nothing_was_stopped(void **state)
{
	struct resumed resumed = { .refused = NULL };

	(void)state;
	assert_int_equal(colld_stopped_resume(&stopped, resume, &resumed), 0);
	assert_string_equal(resumed.text, "");
	assert_int_equal(access(stopped.lock, F_OK), -1);
}

static void each_is_written_once(void **state)
{
	(void)state;
	add("/backup");
	add("cron.service");
	add("cron.service");
	assert_string_equal(text_of_file(), "/backup\ncron.service\n");
}

static void what_is_not_resumed_stays(void **state)
{
	struct resumed resumed = { .refused = "cron.service" };

	(void)state;
	add("/backup");
	add("cron.service");
	add("at.service");
	assert_int_equal(colld_stopped_resume(&stopped, resume, &resumed), -ETIMEDOUT);
	assert_string_equal(resumed.text, "/backup cron.service at.service ");
	assert_string_equal(text_of_file(), "cron.service\n");
	resumed = (struct resumed){ .refused = NULL };
	assert_int_equal(colld_stopped_resume(&stopped, resume, &resumed), 0);
	assert_string_equal(resumed.text, "cron.service ");
	assert_int_equal(access(stopped.path, F_OK), -1);
}

/* Nothing is resumed then, so all of it stays. */
static void all_stays_where_there_is_no_descriptor(void **state)
{
	struct resumed resumed = { .refused = NULL };
	struct rlimit limit, none;

	(void)state;
	add("cron.service");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(colld_stopped_resume(&stopped, resume, &resumed), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_string_equal(text_of_file(), "cron.service\n");
}

/* A job may run that is not seen. */
/* As on a disk that is full. */
static void the_begin_of_a_line_does_not_stay(void **state)
{
	struct resumed resumed = { .refused = NULL };
	struct rlimit was, few;

	(void)state;
	add("a.service");
	getrlimit(RLIMIT_FSIZE, &was);
	few = (struct rlimit){ strlen("a.service\n") + 3, was.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &few);
	assert_int_equal(colld_stopped_add(&stopped, "b.service"), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &was);
	add("c.service");
	assert_string_equal(text_of_file(), "a.service\nc.service\n");
	assert_int_equal(colld_stopped_resume(&stopped, resume, &resumed), 0);
	assert_string_equal(resumed.text, "a.service c.service ");
}

static void jobs_that_cannot_be_read_are_not_none(void **state)
{
	struct colld_jobs jobs = COLLD_JOBS_NONE;
	struct rlimit limit, none;
	char path[600];
	FILE *job;

	(void)state;
	assert_int_equal(colld_jobs_open(&jobs, folder), 0);
	assert_int_equal(colld_jobs_any(&jobs), 0);
	snprintf(path, sizeof(path), "%s/one", jobs.folder);
	job = fopen(path, "w");
	assert_non_null(job);
	fclose(job);
	assert_int_equal(colld_jobs_any(&jobs), 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(colld_jobs_any(&jobs), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	unlink(path);
	colld_jobs_close(&jobs);
	rmdir(jobs.folder);
}

static int begin(void **state)
{
	(void)state;
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	return !mkdtemp(folder) || colld_stopped_open(&stopped, folder, "stopped");
}

static int end(void **state)
{
	(void)state;
	unlink(stopped.path);
	unlink(stopped.lock);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_made_where_nothing_was_stopped, begin, end),
		cmocka_unit_test_setup_teardown(each_is_written_once, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_resumed_stays, begin, end),
		cmocka_unit_test_setup_teardown(all_stays_where_there_is_no_descriptor, begin, end),
		cmocka_unit_test_setup_teardown(the_begin_of_a_line_does_not_stay, begin, end),
		cmocka_unit_test_setup_teardown(jobs_that_cannot_be_read_are_not_none, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
