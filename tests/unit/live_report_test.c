// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What colld is asked of jobs, and what it tells: questions as anybody sends them, names as users give them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/common/host.h"
#include "daemon/report/child.h"
#include "daemon/report/list.h"
#include "daemon/report/question.h"
#include "daemon/report/sandbox.h"
#include "daemon/report/share.h"
#include "node/report/report.h"
#include "tests/lib/flight.h"

static const struct report_asker anybody = { .all = true }, user = { .user = 1000 };

/* ---- questions --------------------------------------------------------------------- */

static struct report_question question;

/* 200, or the status of the refusal, which has to be a line of text. */
static unsigned ask(const char *target, struct report_asker asker)
{
	struct colld_answer why;
	unsigned status;

	if (report_question_read(target, asker, &question, &why))
		return 200;
	status = why.head.status;
	assert_non_null(why.text);
	assert_int_equal(strlen(why.text), why.head.bytes);
	assert_true(strchr(why.text, '\n') == why.text + why.head.bytes - 1);
	assert_non_null(strstr(why.text, "valid:"));
	colld_answer_free(&why);
	return status;
}

static void test_places(void **state)
{
	(void)state;
	assert_int_equal(ask("/jobs", anybody), 200);
	assert_true(question.list && !question.of_user && question.type == COLLD_ANSWER_HTML);
	assert_int_equal(ask("/jobs.json?user=7", anybody), 200);
	assert_true(question.list && question.of_user && question.user == 7 &&
		    question.type == COLLD_ANSWER_JSON);
	assert_int_equal(ask("/report?job=run-1", anybody), 200);
	assert_true(!question.list && !question.of_user);
	assert_string_equal(question.job, "run-1");
	assert_int_equal(ask("/report.json?&user=0&&job=a%20b%2Fc+d&", anybody), 200);
	assert_string_equal(question.job, "a b/c d");
	assert_true(question.of_user && question.user == 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *target;
		unsigned status;
	} cases[] = {
		{ "", 404 }, { "/", 404 }, { "/job", 404 }, { "/jobs/", 404 }, { "/jobs.json/..", 404 },
		{ "/report", 400 }, { "/report?", 400 }, { "/report?job=", 400 }, { "/report?job", 400 },
		{ "/report?job=%", 400 }, { "/report?job=%4", 400 }, { "/report?job=a%4", 400 },
		{ "/report?job=%zz", 400 }, { "/report?job=a%00b", 400 }, { "/report?job=%0a", 400 },
		{ "/report?job=a%7f", 400 }, { "/report?jobs=a", 400 }, { "/report?job=a&x", 400 },
		{ "/report?job=a&user=", 400 }, { "/report?job=a&user=-1", 400 },
		{ "/report?job=a&user=+1", 400 }, { "/report?job=a&user=1x", 400 },
		{ "/report?job=a&user=4294967295", 400 }, { "/report?job=a&user=99999999999999", 400 },
		/* 64 bytes: one more than a name has. */
		{ "/report?job=0123456789012345678901234567890123456789012345678901234567890123", 400 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (ask(cases[i].target, anybody) != cases[i].status)
			fail_msg("%s is not refused with %u", cases[i].target, cases[i].status);
	assert_int_equal(ask("/report?job=012345678901234567890123456789012345678901234567890123456789012",
			     anybody), 200);
}

static void test_user(void **state)
{
	(void)state;
	assert_int_equal(ask("/jobs", user), 200);
	assert_true(question.of_user && question.user == 1000);
	assert_int_equal(ask("/report?job=a&user=1000", user), 200);
	assert_int_equal(ask("/report?job=a&user=0", user), 403);
	assert_int_equal(ask("/jobs?user=1001", user), 403);
	/* The last one counts, and is looked at. */
	assert_int_equal(ask("/jobs?user=1000&user=0", user), 403);
}

static void test_links(void **state)
{
	static const char job[] = "a&b=\"c\"<d>'%+/?#é ~ 012345678901234567890123456789012345678901";
	char query[REPORT_QUERY], target[REPORT_QUERY + 16];

	(void)state;
	assert_int_equal(strlen(job), 63);
	snprintf(target, sizeof(target), "/report%s", report_question_query(job, 4294967294u, query));
	assert_null(strpbrk(query, "\"<>' "));
	assert_int_equal(ask(target, anybody), 200);
	assert_string_equal(question.job, job);
	assert_int_equal(question.user, 4294967294u);
}

/* ---- shares of the time --------------------------------------------------------------- */

enum { ALICE = 1000, BOB, CROWD };
static const u64 second = 1000000000;

/* Who asks as soon as it may, each time for 2 s of CPU time. Returns what it got, in s. */
static unsigned got_by(struct report_shares *shares, const u64 *who, unsigned count, u64 *now, unsigned seconds)
{
	const u64 until = *now + seconds * second;
	unsigned got = 0, i;

	for (; *now < until; *now += second)
		for (i = 0; i < count; i++)
			if (!report_shares_wait(shares, who[i], *now)) {
				report_shares_take(shares, who[i], *now, 2 * second);
				got += 2;
			}
	return got;
}

static void test_share_of_one(void **state)
{
	const u64 alice = ALICE;
	struct report_shares shares = { .until = 0 };
	u64 now = 5 * second;
	unsigned got;

	(void)state;
	got = got_by(&shares, &alice, 1, &now, 1000);
	/* 10 s at once, and a twentieth of the time. */
	assert_in_range(got, 50, 64);
	assert_true(report_shares_wait(&shares, ALICE, now) > 0);
	assert_int_equal(report_shares_wait(&shares, BOB, now), 0);
	now += report_shares_wait(&shares, ALICE, now);
	assert_int_equal(report_shares_wait(&shares, ALICE, now), 0);
	/* Who has not asked for long has all of it. */
	assert_in_range(got_by(&shares, &alice, 1, &now, 1), 2, 2);
	now += 1000 * second;
	assert_in_range(got_by(&shares, &alice, 1, &now, 20), 10, 12);
}

static void test_share_of_all(void **state)
{
	struct report_shares shares = { .until = 0 };
	u64 who[100], now = 5 * second;
	unsigned i, got;

	(void)state;
	for (i = 0; i < 100; i++)
		who[i] = CROWD + i;
	/* Two have not all of it: a third gets some at once. */
	got_by(&shares, who, 2, &now, 500);
	assert_int_equal(report_shares_wait(&shares, ALICE, now), 0);
	/* A crowd has no more than all may have, whichever of it is known; and it ends. */
	got = got_by(&shares, who, 100, &now, 1000);
	assert_in_range(got, 60, 124);
	now += report_shares_wait(&shares, BOB, now);
	assert_int_equal(report_shares_wait(&shares, BOB, now), 0);
	now += 200 * second;
	assert_int_equal(report_shares_wait(&shares, who[0], now), 0);
}

/* ---- by which names ----------------------------------------------------------------- */

static const char *const here[] = {
	"127.0.0.1", "127.0.0.1:9469", "10.0.0.5:9469", "[::1]", "[::1]:9469", "[fe80::1]:80", "localhost", "LocalHost:9469",
	"localhost.", "n5.example", "N5.Example.:1", "monitor", "monitor:",
};
/* What a page of elsewhere can name, or what is nothing. */
static const char *const elsewhere[] = {
	"", ":9469", ".", "evil.example", "evil.example:9469", "localhost.evil.example", "127.0.0.1.evil.example",
	"127.0.0.1@evil", "n5.example.evil", "n5", "example", "n5.example,monitor", ",", "monitor.evil", "127.1",
	"2130706433", "0x7f.1", "127.0.0.1:80:80", "localhost:80a", "[::1", "[::1]a", "[::1]:a", "[]", "[evil.example]", "::1",
	"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]",
};

static void test_hosts(void **state)
{
	char node[300] = "", *dot;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(here) / sizeof(*here); i++)
		if (!colld_host_is_here(here[i], "n5.example,monitor"))
			fail_msg("%s is refused", here[i]);
	for (i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (colld_host_is_here(elsewhere[i], "n5.example,monitor"))
			fail_msg("%s is taken for a name of here", elsewhere[i]);
	assert_false(colld_host_is_here("n5.example", NULL));
	assert_int_equal(gethostname(node, 250), 0);
	assert_true(colld_host_is_here(node, NULL));
	dot = strchr(node, '.');
	if (dot)
		*dot = 0;
	assert_true(colld_host_is_here(node, NULL));
	strcat(node, ".evil.example");
	assert_false(colld_host_is_here(node, NULL));
}

static void test_host_names(void **state)
{
	static const char *const wrong[] = { "", ",", "a,", ",a", "a,,b", "a b", "a:80", "http://a", ".a", "[::1]", "a,.b" };
	size_t i;

	(void)state;
	assert_true(colld_host_are_names("n5"));
	assert_true(colld_host_are_names("n5.cluster.example,monitor,a_b-c"));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (colld_host_are_names(wrong[i]))
			fail_msg("%s is a list of names", wrong[i]);
}

/* ---- what is told --------------------------------------------------------------------- */

static const char hostile[] = "</a><script>\"'&";

static char *page_text;
static size_t page_bytes;

static FILE *page_open(void)
{
	return open_memstream(&page_text, &page_bytes);
}

/* It has the name, and no part of it is a part of the page. */
static void page_close(FILE *to)
{
	assert_int_equal(fclose(to), 0);
	assert_non_null(strstr(page_text, "&#60;/a&#62;&#60;script&#62;&#34;&#39;&#38;"));
	assert_null(strstr(page_text, "<script"));
	assert_null(strstr(page_text, hostile));
	free(page_text);
}

static void test_list(void **state)
{
	struct report_job jobs[2] = {
		{ .user = 1, .ranks = 8, .here = 4, .opened = 1, .calls = UINT64_MAX },
		{ .user = 2, .ranks = 1, .here = 1, .opened = UINT64_MAX },
	};
	const struct report_gathered gathered = { .job = jobs, .jobs = 2, .more = true };
	json_t *json, *first;
	FILE *to = page_open();

	(void)state;
	snprintf(jobs[0].job, sizeof(jobs[0].job), "%s", hostile);
	snprintf(jobs[0].program, sizeof(jobs[0].program), "%s", hostile);
	snprintf(jobs[1].job, sizeof(jobs[1].job), "run-1");
	report_list_page(&gathered, "<node>", to);
	page_close(to);
	json = report_list_json(&gathered, "<node>");
	first = json_array_get(json_object_get(json, "jobs"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "job")), hostile);
	assert_true(json_is_true(json_object_get(first, "part")));
	assert_true(json_integer_value(json_object_get(first, "calls")) > 0);
	assert_true(json_is_true(json_object_get(json, "more")));
	json_decref(json);
}

/* A job of four, of which one rank is on another node. */
static void three_of_four(struct flight_job *job)
{
	size_t i;

	flight_open(job, 4);
	free(job->set.seen[3]);
	job->set.count = job->job.count = 3;
	for (i = 0; i < 3; i++)
		flight_timed(job, i, 0, 100, 200);
}

static void test_report(void **state)
{
	struct coll_flight_report report;
	struct flight_job job;
	json_t *json;
	FILE *to = page_open();
	size_t i;

	(void)state;
	three_of_four(&job);
	for (i = 0; i < 3; i++) {
		snprintf(job.set.seen[i]->page.job, sizeof(job.set.seen[i]->page.job), "%s", hostile);
		snprintf(job.set.seen[i]->page.host, sizeof(job.set.seen[i]->page.host), "%s", hostile);
		snprintf(job.set.seen[i]->page.program, sizeof(job.set.seen[i]->page.program), "%s",
			 hostile);
	}
	assert_int_equal(coll_flight_report_make(&report, &job.job), 0);
	node_report_page(&report, &job.job, to);
	fflush(to);
	assert_non_null(strstr(page_text, "of 4 ranks are here"));
	page_close(to);
	json = node_report_json(&report, &job.job);
	assert_string_equal(json_string_value(json_object_get(json, "job")), hostile);
	assert_true(json_is_true(json_object_get(json, "part")));
	assert_true(json_is_false(json_object_get(json, "cut")));
	json_decref(json);
	coll_flight_report_free(&report);
	flight_close(&job);
}

/* Ranks were looked at, and nothing was seen: the heading does not stand alone. */
static void test_no_causes(void **state)
{
	struct coll_flight_report report;
	struct flight_job job;
	FILE *to = page_open();
	size_t i;

	(void)state;
	three_of_four(&job);
	for (i = 0; i < 3; i++)
		job.set.seen[i]->observed =
			(struct coll_flight_observed){ .since = 1, .until = 1000000000, .looks = 9 };
	assert_int_equal(coll_flight_report_make(&report, &job.job), 0);
	coll_flight_report_print(&report, &job.job, to);
	fflush(to);
	assert_non_null(strstr(page_text, "of a core):\n- none: "));
	fclose(to);
	free(page_text);
	coll_flight_report_free(&report);
	flight_close(&job);
}

/* One record that says so is enough: those of other nodes may have all. */
static void test_cut(void **state)
{
	static const char said[] = "more ranks than are read at once: 3 of 4 are in this report";
	struct coll_flight_report report;
	struct flight_job job;
	json_t *json;
	FILE *to = page_open();

	(void)state;
	three_of_four(&job);
	job.set.seen[1]->flags |= COLL_FLIGHT_CUT;
	assert_int_equal(coll_flight_report_make(&report, &job.job), 0);
	node_report_page(&report, &job.job, to);
	fflush(to);
	assert_non_null(strstr(page_text, said));
	fclose(to);
	free(page_text);
	to = page_open();
	coll_flight_report_print(&report, &job.job, to);
	fflush(to);
	assert_non_null(strstr(page_text, said));
	fclose(to);
	free(page_text);
	json = node_report_json(&report, &job.job);
	assert_true(json_is_true(json_object_get(json, "cut")));
	json_decref(json);
	coll_flight_report_free(&report);
	flight_close(&job);
}

static void test_headers(void **state)
{
	struct colld_answer_header header[COLLD_ANSWER_HEADERS];
	const struct colld_answer_head page = { 200, COLLD_ANSWER_HTML, 0 }, odd = { 200, 77, 0 };
	u32 i, count = colld_answer_headers(&page, header), policies = 0;

	(void)state;
	assert_true(count <= COLLD_ANSWER_HEADERS);
	for (i = 0; i < count; i++)
		if (!strcmp(header[i].name, "Content-Security-Policy"))
			policies += !strncmp(header[i].value, "default-src 'none'", 18) &&
				    !strstr(header[i].value, "script");
	assert_int_equal(policies, 1);
	assert_true(colld_answer_headers(&odd, header) > 0);
	assert_non_null(strstr(header[0].value, "text/plain"));
}

/* ---- the child ------------------------------------------------------------------------ */

static void wait_ended(struct report_child *child, u64 *cost)
{
	int tries = 500;

	while (!report_child_ended(child, cost) && --tries)
		usleep(10000);
	assert_true(tries);
	assert_int_equal(child->pid, 0);
}

static void run_confined(int fd, const void *data)
{
	const int entered = report_sandbox_enter();
	char said[64];
	void *memory = malloc(64 << 20);
	int used;

	(void)data;
	if (entered == -ENOSYS) {
		used = snprintf(said, sizeof(said), "no sandbox");
	} else {
		const bool opened = open("/dev/null", O_RDONLY) >= 0, killed = !kill(getppid(), 0),
			   forked = fork() >= 0, executed = !execl("/bin/true", "true", (char *)NULL);

		used = snprintf(said, sizeof(said), "%d %d %d %d %d %d %d", entered, opened, killed,
				forked, executed, memory != NULL, access("/proc/self/fd/4", F_OK));
	}
	if (write(fd, said, used) != used)
		_exit(1);
}

static void test_sandbox(void **state)
{
	struct report_child child;
	int ends[2], stays[2];
	char said[64] = "";
	u64 cost = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(stays), 0);
	assert_int_equal(report_child_start(&child, ends[1], run_confined, NULL), 0);
	close(ends[1]);
	assert_true(read(ends[0], said, sizeof(said) - 1) > 0);
	wait_ended(&child, &cost);
	close(ends[0]);
	close(stays[0]);
	close(stays[1]);
	if (!strcmp(said, "no sandbox"))
		skip();
	assert_string_equal(said, "0 0 0 0 0 1 -1");
}

/* The last of them is that of the folder. */
static void run_listing(int fd, const void *data)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	char path[PATH_MAX];

	(void)data;
	while (folder && (entry = readdir(folder))) {
		const int one = atoi(entry->d_name);
		const ssize_t length = *entry->d_name == '.' || one == fd || one == dirfd(folder) ? -1 :
				       readlinkat(dirfd(folder), entry->d_name, path, sizeof(path) - 1);

		if (length >= 0)
			dprintf(fd, "%d %.*s\n", one, (int)length, path);
	}
}

/* Not colld's log either. */
static void test_files(void **state)
{
	struct report_child child;
	char said[256] = "";
	size_t used = 0;
	ssize_t got;
	int ends[2];
	u64 cost;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(report_child_start(&child, ends[1], run_listing, NULL), 0);
	close(ends[1]);
	while ((got = read(ends[0], said + used, sizeof(said) - 1 - used)) > 0)
		used += got;
	close(ends[0]);
	wait_ended(&child, &cost);
	assert_string_equal(said, "0 /dev/null\n1 /dev/null\n2 /dev/null\n");
}

static void run_for_ever(int fd, const void *data)
{
	(void)fd;
	(void)data;
	for (;;)
		pause();
}

static void test_deadline(void **state)
{
	struct report_child child;
	u64 cost;

	(void)state;
	assert_int_equal(report_child_start(&child, STDERR_FILENO, run_for_ever, NULL), 0);
	assert_false(report_child_ended(&child, &cost));
	child.until = 0;
	wait_ended(&child, &cost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_user), cmocka_unit_test(test_links),
		cmocka_unit_test(test_share_of_one), cmocka_unit_test(test_share_of_all),
		cmocka_unit_test(test_hosts), cmocka_unit_test(test_host_names),
		cmocka_unit_test(test_list), cmocka_unit_test(test_report),
		cmocka_unit_test(test_cut), cmocka_unit_test(test_no_causes),
		cmocka_unit_test(test_headers), cmocka_unit_test(test_sandbox),
		cmocka_unit_test(test_files), cmocka_unit_test(test_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
