// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/common/clock.h"
#include "make.h"
#include "works.h"

/* Of one text, and of all that are kept, come or are sent: long ones leave some for those that are no longer than a page. */
enum { TEXT_MOST = 32 << 20, TEXT_LONG = 4 << 20, SUM_MOST = 64 << 20, SUM_OF_LONG = 48 << 20 };
enum { READ_MOST = 1 << 20, FRESH_PART = 20 };

static const u64 FRESH_NS = 1000000000;

/* ---- in the child ------------------------------------------------------------------ */

struct work_question {
	const struct report_question *question;
	const char *state;
};

static bool pipe_write(int fd, const void *data, size_t bytes)
{
	const char *from = data;

	while (bytes) {
		const ssize_t wrote = write(fd, from, bytes);

		if (wrote <= 0)
			return false;
		from += wrote;
		bytes -= wrote;
	}
	return true;
}

static void work_make(int fd, const void *data)
{
	const struct work_question *of = data;
	struct colld_answer answer;

	report_make(of->question, of->state, &answer);
	if (answer.text && pipe_write(fd, &answer.head, sizeof(answer.head)))
		pipe_write(fd, answer.text, answer.head.bytes);
}

/* ---- one work ---------------------------------------------------------------------- */

static void work_reply(struct report_work *work)
{
	while (work->requests)
		colld_request_reply(work->request[--work->requests], work->reply);
}

static void request_refuse(struct colld_request *request, u32 status, const char *why)
{
	struct colld_answer answer;

	colld_answer_say(&answer, status, "%s", why);
	colld_request_answer(request, &answer);
}

static void work_refuse(struct report_work *work, u32 status, const char *why)
{
	while (work->requests)
		request_refuse(work->request[--work->requests], status, why);
}

static void work_free(struct report_work *work)
{
	coll_assert(!work->requests);
	colld_answer_free(&work->answer);
	colld_reply_drop(work->reply);
	*work = (struct report_work){ .state = REPORT_WORK_FREE, .pipe = -1 };
}

static bool work_watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void work_unpipe(struct report_works *works, struct report_work *work)
{
	if (work->pipe < 0)
		return;
	epoll_ctl(works->epoll, EPOLL_CTL_DEL, work->pipe, NULL);
	close(work->pipe);
	work->pipe = -1;
}

static int work_begin(struct report_works *works, struct report_work *work)
{
	const struct work_question question = { &work->question, works->state };
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	error = report_child_start(&work->child, ends[1], work_make, &question);
	close(ends[1]);
	work->pipe = ends[0];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	if (!error) {
		work->state = REPORT_WORK_RUNS;
		/* What is not watched is seen at the next tick of the timer. */
		work_watch(works->epoll, work->pipe);
		work_watch(works->epoll, work->child.ended);
		return 0;
	}
	work_unpipe(works, work);
	return error;
}

static void work_start(struct report_works *works, struct report_work *work)
{
	const int error = work_begin(works, work);

	if (!error) {
		report_shares_begin(works->shares, work->who);
		return;
	}
	works->failed++;
	work_refuse(work, 503, strerror(-error));
	work_free(work);
}

/* Of all texts, those that come as well. */
static u64 works_bytes(const struct report_works *works)
{
	u64 bytes = colld_reply_bytes();
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++)
		if (works->work[i].answer.text)
			bytes += works->work[i].answer.head.bytes;
	return bytes;
}

static struct report_work *works_oldest(struct report_works *works, enum report_work_state state)
{
	struct report_work *oldest = NULL;
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++)
		if (works->work[i].state == state && (!oldest || works->work[i].begun < oldest->begun))
			oldest = &works->work[i];
	return oldest;
}

/* What is kept and was made longest ago goes for it. What is still sent stays until it is. */
static bool works_have_room(struct report_works *works, u64 bytes)
{
	const u64 most = bytes > TEXT_LONG ? SUM_OF_LONG : SUM_MOST;
	struct report_work *oldest;

	while (works_bytes(works) + bytes > most && (oldest = works_oldest(works, REPORT_WORK_DONE)))
		work_free(oldest);
	return works_bytes(works) + bytes <= most;
}

/* Where the next bytes belong; 0: no more do. */
static size_t work_room(struct report_works *works, struct report_work *work, char **at)
{
	const u64 head = sizeof(work->answer.head);

	if (work->got < head) {
		*at = (char *)&work->answer.head + work->got;
		return head - work->got;
	}
	if (!work->answer.text && work->answer.head.bytes <= TEXT_MOST) {
		work->full = !works_have_room(works, work->answer.head.bytes);
		if (!work->full)
			work->answer.text = malloc(work->answer.head.bytes + 1);
	}
	if (!work->answer.text)
		return 0;
	*at = work->answer.text + (work->got - head);
	return work->answer.head.bytes - (work->got - head);
}

/* The rest comes with the next event: colld has other work. */
static void work_read(struct report_works *works, struct report_work *work)
{
	const u64 head = sizeof(work->answer.head);
	ssize_t got = 1;
	size_t room, turn = 0;
	char *at;

	while (work->pipe >= 0 && got > 0) {
		if (turn >= READ_MOST)
			return;
		room = work_room(works, work, &at);
		got = room ? read(work->pipe, at, room) : 0;
		if (got > 0) {
			work->got += got;
			turn += got;
		}
	}
	if (work->pipe < 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	work_unpipe(works, work);
	if (work->answer.text && work->got == head + work->answer.head.bytes)
		work->reply = colld_reply_make(&work->answer);
	if (work->reply)
		work_reply(work);
}

static void work_end(struct report_works *works, struct report_work *work, u64 cost)
{
	const u64 now = colld_now(), rest = FRESH_PART * cost;

	works->cost += cost;
	report_shares_take(works->shares, work->who, now, cost);
	work_read(works, work);		/* a pipe has less than what is read at once */
	if (!work->reply) {
		works->failed++;
		work_refuse(work, 504, now >= work->child.until ? "the report took longer than 30 s" :
			    work->answer.head.bytes > TEXT_MOST ? "the report is longer than 32 MB; valid: "
			    "coll show --dump, or coll report, on the node" :
			    work->full ? "answers that are being sent have all memory that there is for them; ask in 60 s" :
			    "the report could not be made");
		work_free(work);
		return;
	}
	works->made++;
	work->state = REPORT_WORK_DONE;
	work->until = work->begun + (rest > FRESH_NS ? rest : FRESH_NS);
}

/* ---- all of them --------------------------------------------------------------------- */

static u32 works_running(const struct report_works *works)
{
	u32 i, count = 0;

	for (i = 0; i < REPORT_WORKS; i++)
		count += works->work[i].state == REPORT_WORK_RUNS;
	return count;
}

/* Those that have waited for as long as one may take. */
static void works_give_up(struct report_works *works)
{
	const u64 now = colld_now();
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++) {
		struct report_work *work = &works->work[i];

		if (work->state != REPORT_WORK_WAITS || now - work->begun < REPORT_CHILD_NS)
			continue;
		works->failed++;
		work_refuse(work, 503, "there are too many requests now; ask in 10 s");
		work_free(work);
	}
}

static bool works_run_for(const struct report_works *works, u64 who)
{
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++)
		if (works->work[i].state == REPORT_WORK_RUNS && works->work[i].who == who)
			return true;
	return false;
}

/* Of those who have some of their share left: that of who has none yet, else of anybody, and the oldest of them. */
static struct report_work *works_next(struct report_works *works)
{
	struct report_work *next = NULL;
	bool next_runs = false;
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++) {
		struct report_work *work = &works->work[i];
		const bool runs = works_run_for(works, work->who);

		if (work->state != REPORT_WORK_WAITS || report_shares_wait(works->shares, work->who, colld_now()) ||
		    (next && (runs > next_runs || (runs == next_runs && work->begun >= next->begun))))
			continue;
		next = work;
		next_runs = runs;
	}
	return next;
}

static void works_start(struct report_works *works)
{
	struct report_work *next;

	while (works_running(works) < REPORT_WORKS_AT_ONCE && (next = works_next(works))) {
		next->begun = colld_now();
		work_start(works, next);
	}
}

/* One that is done and not fresh is not given. */
static struct report_work *works_find(struct report_works *works,
				      const struct report_question *question)
{
	const u64 now = colld_now();
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++) {
		struct report_work *work = &works->work[i];

		if (work->state == REPORT_WORK_DONE && now >= work->until)
			work_free(work);
		else if (work->state != REPORT_WORK_FREE &&
			 report_question_same(&work->question, question))
			return work;
	}
	return NULL;
}

/* A free one, or that whose answer is the oldest; NULL: a connection waits for each. */
static struct report_work *works_make(struct report_works *works, u64 who,
				      const struct report_question *question)
{
	struct report_work *found = works_oldest(works, REPORT_WORK_FREE);

	if (!found)
		found = works_oldest(works, REPORT_WORK_DONE);
	if (!found)
		return NULL;
	work_free(found);
	found->state = REPORT_WORK_WAITS;
	found->who = who;
	found->question = *question;
	found->begun = colld_now();
	return found;
}

void report_works_ask(struct report_works *works, struct colld_request *request,
		      const struct report_question *question)
{
	const u64 who = colld_request_who(request);
	struct report_work *work = works_find(works, question);
	struct colld_answer busy;

	if (work && work->reply) {
		colld_request_reply(request, work->reply);
		return;
	}
	if (!work && !report_shares_admit(works->shares, who, &busy)) {
		colld_request_answer(request, &busy);
		return;
	}
	if (!work)
		work = works_make(works, who, question);
	if (!work || work->requests == COLLD_CONNECTIONS) {
		request_refuse(request, 503, "there are too many requests now; ask in 1 s");
		return;
	}
	work->request[work->requests++] = request;
	works_start(works);
}

u32 report_works_progress(struct report_works *works)
{
	u64 cost;
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++) {
		struct report_work *work = &works->work[i];

		if (work->state != REPORT_WORK_RUNS)
			continue;
		work_read(works, work);
		if (report_child_ended(&work->child, &cost))
			work_end(works, work, cost);
	}
	works_give_up(works);
	works_start(works);
	return works_running(works);
}

void report_works_close(struct report_works *works)
{
	u32 i;

	for (i = 0; i < REPORT_WORKS; i++) {
		struct report_work *work = &works->work[i];

		if (work->state == REPORT_WORK_RUNS)
			report_child_kill(&work->child);
		work_unpipe(works, work);
		work_refuse(work, 503, "colld ends");
		work_free(work);
	}
}
