// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The report's files when ranks leave: whole, of all ranks, and nobody else's files are touched. */
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/flight/report_file.h"

enum { RANKS = 3 };

static char top[] = "/tmp/report_file_test.XXXXXX", file[64], records[80], folder[PATH_MAX];
static struct coll_flight flight[RANKS];

static void open_job(void)
{
	uint32_t rank;

	for (rank = 0; rank < RANKS; rank++) {
		const struct coll_flight_rank of = { .job = "the job", .progress = "call",
						     .engine = "uring", .rank = rank,
						     .ranks = RANKS };
		const char *why;

		memset(&flight[rank], 0, sizeof(flight[rank]));
		assert_int_equal(coll_flight_open(&flight[rank], &of, false, &why), 0);
	}
	snprintf(file, sizeof(file), "%s/report", top);
	snprintf(records, sizeof(records), "%s.flight", file);
	assert_int_equal(coll_flight_report_folder(file, "the job", folder, sizeof(folder)), 0);
}

static void close_job(void)
{
	uint32_t rank;

	for (rank = 0; rank < RANKS; rank++)
		coll_flight_close(&flight[rank]);
	unlink(file);
	unlink(records);
}

static size_t records_in(const char *path)
{
	struct stat stat_of;

	return stat(path, &stat_of) ? 0 : stat_of.st_size / sizeof(struct coll_flight_seen);
}

static void write_text(const char *path, const char *text)
{
	FILE *to = fopen(path, "w");

	assert_non_null(to);
	fputs(text, to);
	fclose(to);
}

static void path_in(char path[PATH_MAX], const char *in, const char *name)
{
	assert_true(snprintf(path, PATH_MAX, "%s/%s", in, name) < PATH_MAX);
}

static void the_last_to_leave_makes_it(void **state)
{
	uint32_t rank;

	(void)state;
	open_job();
	for (rank = 0; rank < RANKS; rank++) {
		assert_int_equal(records_in(records), 0);
		assert_int_equal(coll_flight_report_leave(&flight[rank], file, false), 0);
	}
	assert_int_equal(records_in(records), RANKS);
	assert_int_equal(access(folder, F_OK), -1);
	close_job();
}

/* What is being written, is broken or is not of the job counts for nothing. */
static void only_records_of_the_job_are_counted_and_removed(void **state)
{
	char broken[PATH_MAX], half[PATH_MAX], other[PATH_MAX];

	(void)state;
	open_job();
	assert_int_equal(coll_flight_report_leave(&flight[0], file, false), 0);
	path_in(broken, folder, "coll-the_job-2.flight");
	path_in(half, folder, "coll-the_job-1.flight.new");
	path_in(other, folder, "letter.flight");
	write_text(broken, "no record");
	write_text(half, "");
	write_text(other, "mine");
	assert_int_equal(coll_flight_report_leave(&flight[1], file, false), 0);
	assert_int_equal(records_in(records), 0);
	assert_int_equal(coll_flight_report_leave(&flight[2], file, false), 0);
	assert_int_equal(records_in(records), RANKS);
	assert_int_equal(access(other, F_OK), 0);
	unlink(half);
	unlink(other);
	assert_int_equal(rmdir(folder), 0);
	close_job();
}

/* It is of the page that the rank has. */
static void observe(struct coll_flight_observation *one, uint32_t rank)
{
	one->rank = rank;
	one->opened = flight[rank].page->opened;
	one->pid = flight[rank].page->pid;
}

/* Of all that observers have written the records of the job's ranks get theirs. */
static void what_was_observed_is_in_the_records(void **state)
{
	struct coll_flight_observation one = {
		.magic = COLL_FLIGHT_OBSERVED_MAGIC, .version = COLL_FLIGHT_VERSION,
		.job = "the job", .observed = { .looks = 77 },
	};
	struct coll_flight_seen seen;
	char path[PATH_MAX];
	FILE *to;
	uint32_t rank;

	(void)state;
	open_job();
	for (rank = 0; rank < RANKS - 1; rank++)
		assert_int_equal(coll_flight_report_leave(&flight[rank], file, false), 0);
	path_in(path, folder, "coll-the_job-host-1.observed");
	to = fopen(path, "w");
	assert_non_null(to);
	observe(&one, 1);
	fwrite(&one, sizeof(one), 1, to);
	one.observed.looks = 88;
	one.opened--;			/* an earlier job of the name */
	fwrite(&one, sizeof(one), 1, to);
	observe(&one, 1);
	one.pid++;
	fwrite(&one, sizeof(one), 1, to);
	observe(&one, 1);
	strcpy(one.job, "another");
	fwrite(&one, sizeof(one), 1, to);
	fputs("half", to);
	fclose(to);
	assert_int_equal(coll_flight_report_leave(&flight[RANKS - 1], file, false), 0);
	assert_int_equal(access(folder, F_OK), -1);
	to = fopen(records, "r");
	assert_non_null(to);
	for (rank = 0; rank < RANKS; rank++) {
		assert_int_equal(fread(&seen, sizeof(seen), 1, to), 1);
		assert_int_equal(seen.observed.looks, rank == 1 ? 77 : 0);
	}
	fclose(to);
	close_job();
}

/* Names are of any user's programs, and files may say anything: the report is made all the same. */
static void what_cannot_be_observed_is_dropped(void **state)
{
	struct coll_flight_observation one = {
		.magic = COLL_FLIGHT_OBSERVED_MAGIC, .version = COLL_FLIGHT_VERSION,
		.job = "the job", .observed = { .looks = 77, .since = 5, .until = 9 },
	};
	struct coll_flight_set set = { .count = 0 };
	char path[PATH_MAX];
	uint32_t rank;
	FILE *to;

	(void)state;
	open_job();
	for (rank = 0; rank < RANKS; rank++)
		assert_int_equal(coll_flight_report_record(&flight[rank], file), 0);
	path_in(path, folder, "coll-the_job-host-1.observed");
	to = fopen(path, "w");
	assert_non_null(to);
	memset(one.observed.taker[0].name, 'x', sizeof(one.observed.taker[0].name));
	memcpy(one.observed.taker[0].name, "a\033[31m\377b", 8);
	memset(one.observed.taker[0].cgroup, '\n', sizeof(one.observed.taker[0].cgroup));
	observe(&one, 0);
	fwrite(&one, sizeof(one), 1, to);
	observe(&one, 1);
	one.observed.until = 4;
	fwrite(&one, sizeof(one), 1, to);
	observe(&one, 2);
	one.observed.until = UINT64_MAX;
	fwrite(&one, sizeof(one), 1, to);
	fclose(to);
	assert_int_equal(coll_flight_report_gather(&set, file, "the job", 0), 0);
	assert_int_equal(set.count, RANKS);
	for (rank = 0; rank < RANKS; rank++)
		assert_int_equal(set.seen[rank]->observed.looks, rank ? 0 : 77);
	assert_memory_equal(set.seen[0]->observed.taker[0].name, "a?[31m?b", 8);
	assert_int_equal(strlen(set.seen[0]->observed.taker[0].name), 31);
	assert_int_equal(strspn(set.seen[0]->observed.taker[0].cgroup, "?"), 87);
	assert_int_equal(coll_flight_report_write(&set, file), 0);
	coll_flight_free(&set);
	coll_flight_report_clear(file, "the job");
	assert_int_equal(access(folder, F_OK), -1);
	close_job();
}

/* Neither a FIFO nor a link at the name holds the observer up, or leads it elsewhere. */
static void an_observer_writes_past_what_is_there(void **state)
{
	struct coll_flight_observation one = {
		.magic = COLL_FLIGHT_OBSERVED_MAGIC, .version = COLL_FLIGHT_VERSION,
		.job = "the job", .observed = { .looks = 77, .since = 5, .until = 9 },
	};
	char host[64], name[160], path[PATH_MAX];
	struct coll_flight_set set = { .count = 0 };

	(void)state;
	open_job();
	assert_int_equal(coll_flight_report_record(&flight[0], file), 0);
	observe(&one, 0);
	gethostname(host, sizeof(host));
	snprintf(name, sizeof(name), "coll-the_job-%s-%d.observed.new", host, getpid());
	path_in(path, folder, name);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(coll_flight_report_observe(folder, "the job", &one, 1), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(coll_flight_report_observe(folder, "the job", &one, 1), 0);
	assert_int_equal(mkfifo(path, 0600), 0);	/* as if it had been killed */
	assert_int_equal(coll_flight_report_gather(&set, file, "the job", 0), 0);
	assert_int_equal(set.count, 1);
	assert_int_equal(set.seen[0]->observed.looks, 77);
	coll_flight_free(&set);
	coll_flight_report_clear(file, "the job");
	assert_int_equal(access(folder, F_OK), -1);
	assert_int_equal(coll_flight_report_observe(folder, "the job", &one, 1), -ENOENT);
	close_job();
}

static void who_leaves_later_adds_its_record(void **state)
{
	(void)state;
	open_job();
	assert_int_equal(coll_flight_report_record(&flight[1], file), 0);
	assert_int_equal(coll_flight_report_leave(&flight[0], file, true), 0);
	assert_int_equal(records_in(records), 2);
	assert_int_equal(coll_flight_report_leave(&flight[2], file, true), 0);
	assert_int_equal(records_in(records), 3);
	close_job();
}

static void an_earlier_job_of_the_name_is_replaced(void **state)
{
	uint32_t rank;

	(void)state;
	open_job();
	for (rank = 0; rank < RANKS; rank++)
		assert_int_equal(coll_flight_report_leave(&flight[rank], file, false), 0);
	for (rank = 0; rank < RANKS; rank++)
		flight[rank].page->opened++;
	assert_int_equal(coll_flight_report_leave(&flight[0], file, true), 0);
	assert_int_equal(records_in(records), 1);
	close_job();
}

/* As if it had been left a minute before. */
static void make_older(const char *path)
{
	struct coll_flight_seen seen;
	FILE *record = fopen(path, "r+");

	assert_non_null(record);
	assert_int_equal(fread(&seen, sizeof(seen), 1, record), 1);
	seen.realtime -= 60 * 1000000000ull;
	rewind(record);
	assert_int_equal(fwrite(&seen, sizeof(seen), 1, record), 1);
	assert_int_equal(fclose(record), 0);
}

static void make_claim(time_t age)
{
	const struct timespec then[2] = { { time(NULL) - age, 0 }, { time(NULL) - age, 0 } };
	char claim[PATH_MAX];

	path_in(claim, folder, "made");
	write_text(claim, "");
	assert_int_equal(utimensat(AT_FDCWD, claim, then, 0), 0);
}

/* Ranks 0 and 1 have left their records, then rank 2 was killed, and the job starts again. */
static void leave_first_attempt(void)
{
	char path[PATH_MAX];

	assert_int_equal(coll_flight_report_leave(&flight[0], file, false), 0);
	assert_int_equal(coll_flight_report_leave(&flight[1], file, false), 0);
	path_in(path, folder, "coll-the_job-0.flight");
	make_older(path);
	path_in(path, folder, "coll-the_job-1.flight");
	make_older(path);
}

static void records_of_an_earlier_attempt_do_not_count(void **state)
{
	(void)state;
	open_job();
	leave_first_attempt();
	assert_int_equal(coll_flight_report_leave(&flight[2], file, false), 0);
	assert_int_equal(records_in(records), 0);
	assert_int_equal(coll_flight_report_leave(&flight[0], file, false), 0);
	assert_int_equal(records_in(records), 0);
	assert_int_equal(coll_flight_report_leave(&flight[1], file, false), 0);
	assert_int_equal(records_in(records), RANKS);
	assert_int_equal(access(folder, F_OK), -1);
	close_job();
}

/* ... nor does the lowest of them keep the lowest of those that are left from making the report. */
static void an_earlier_attempt_makes_no_report_of_a_failed_job(void **state)
{
	(void)state;
	open_job();
	leave_first_attempt();
	assert_int_equal(coll_flight_report_leave(&flight[2], file, true), 0);
	assert_int_equal(records_in(records), 1);
	assert_int_equal(access(folder, F_OK), -1);
	close_job();
}

static void a_stale_claim_is_taken_over(void **state)
{
	uint32_t rank;

	(void)state;
	open_job();
	for (rank = 0; rank < RANKS - 1; rank++)
		assert_int_equal(coll_flight_report_leave(&flight[rank], file, false), 0);
	make_claim(0);
	assert_int_equal(coll_flight_report_leave(&flight[rank], file, false), 0);
	assert_int_equal(records_in(records), 0);	/* somebody makes it */
	make_claim(20);					/* ... who was of an earlier attempt */
	assert_int_equal(coll_flight_report_leave(&flight[rank], file, false), 0);
	assert_int_equal(records_in(records), RANKS);
	assert_int_equal(access(folder, F_OK), -1);
	close_job();
}

/* A limit stands for a full disk: it lets each rank write its own record, and not all in one. */
static void why_it_cannot_be_written_is_told(void **state)
{
	struct rlimit before, limit;
	uint32_t rank;

	(void)state;
	open_job();
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 2 * sizeof(struct coll_flight_seen);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (rank = 0; rank < RANKS; rank++)
		assert_int_equal(coll_flight_report_leave(&flight[rank], file, false),
				 rank < RANKS - 1 ? 0 : -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(records_in(records), 0);
	assert_int_equal(coll_flight_report_leave(&flight[0], file, false), 0);	/* space again */
	assert_int_equal(records_in(records), RANKS);
	close_job();
}

static void what_is_no_report_stays(void **state)
{
	char text[16] = "";
	FILE *from;

	(void)state;
	open_job();
	write_text(file, "#!/bin/solver\n");
	assert_int_equal(coll_flight_report_check(file), -EEXIST);
	assert_int_equal(coll_flight_report_leave(&flight[0], file, true), -EEXIST);
	from = fopen(file, "r");
	assert_non_null(fgets(text, sizeof(text), from));
	fclose(from);
	assert_string_equal(text, "#!/bin/solver\n");
	assert_int_equal(unlink(file), 0);	/* now it can be made: the claim was given back */
	assert_int_equal(coll_flight_report_leave(&flight[1], file, true), 0);
	assert_int_equal(coll_flight_report_leave(&flight[0], file, true), 0);
	assert_int_equal(records_in(records), 2);
	close_job();
}

static void the_folder_must_be_this_users(void **state)
{
	char elsewhere[PATH_MAX];

	(void)state;
	open_job();
	path_in(elsewhere, top, "elsewhere");
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(symlink(elsewhere, folder), 0);
	assert_true(coll_flight_report_leave(&flight[0], file, false) < 0);
	assert_int_equal(rmdir(elsewhere), 0);	/* nothing is in it */
	unlink(folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(coll_flight_report_leave(&flight[0], file, false), -EPERM);
	assert_int_equal(rmdir(folder), 0);
	close_job();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_to_leave_makes_it),
		cmocka_unit_test(only_records_of_the_job_are_counted_and_removed),
		cmocka_unit_test(what_was_observed_is_in_the_records),
		cmocka_unit_test(what_cannot_be_observed_is_dropped),
		cmocka_unit_test(an_observer_writes_past_what_is_there),
		cmocka_unit_test(who_leaves_later_adds_its_record),
		cmocka_unit_test(an_earlier_job_of_the_name_is_replaced),
		cmocka_unit_test(records_of_an_earlier_attempt_do_not_count),
		cmocka_unit_test(an_earlier_attempt_makes_no_report_of_a_failed_job),
		cmocka_unit_test(a_stale_claim_is_taken_over),
		cmocka_unit_test(why_it_cannot_be_written_is_told),
		cmocka_unit_test(what_is_no_report_stays),
		cmocka_unit_test(the_folder_must_be_this_users),
	};
	int failed;

	if (!mkdtemp(top))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(top);
	return failed;
}
