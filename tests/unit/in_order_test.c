// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Calls that are executed in order: the lists, of all algorithms; and that the engine can go on after
 * each op of one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/exec/in_order.h"
#include "libcoll/exec/order.h"
#include "tests/lib/schedules.h"
#include "tests/unit/exec_world.h"

/* ---- lists ----------------------------------------------------------------------------------- */

enum { MOST = 20 };

static struct coll_planned listed[MOST];
static uint32_t lists, unlisted;

static void list_begin(struct coll_planned *planned, struct coll_schedule *s)
{
	*planned = (struct coll_planned){ .schedule = s };
	coll_plan_init(&planned->plan, s, malloc(coll_plan_bytes(s)));
	coll_order_make(planned);
}

static void list_end(struct coll_planned *planned)
{
	free((void *)planned->plan.pending);
	free(planned->order);
}

static bool may_start(const struct coll_schedule *s, uint32_t op, uint64_t done)
{
	const uint32_t *wait = coll_waits(s) + coll_ops(s)[op].wait;
	uint32_t i;

	for (i = 0; i < coll_ops(s)[op].waits; i++)
		if (!(done >> wait[i] & 1))
			return false;
	return true;
}

/* Whether there is one of the kind, or of another kind. */
static bool any_may_start(const struct coll_schedule *s, uint64_t done, uint32_t kind, bool other)
{
	uint32_t op;

	for (op = 0; op < s->ops; op++)
		if (!(done >> op & 1) && (coll_ops(s)[op].kind == kind) != other &&
		    may_start(s, op, done))
			return true;
	return false;
}

static void assert_list(const struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	uint64_t done = 0;
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const uint32_t op = planned->order[i];

		assert_true(op < s->ops && !(done >> op & 1));
		assert_true(may_start(s, op, done));
		if (coll_ops(s)[op].kind != COLL_OP_SEND)
			assert_false(any_may_start(s, done, COLL_OP_SEND, false));
		if (coll_ops(s)[op].kind == COLL_OP_RECV)
			assert_false(any_may_start(s, done, COLL_OP_RECV, true));
		done |= 1ull << op;
	}
}

/* Whether the sender of this receive of rank `to` has come past its send. */
static bool was_sent(struct coll_schedule *const *s, const uint32_t *at, uint32_t to,
		     const struct coll_op *recv)
{
	const uint32_t from = coll_peers(s[to])[recv->peer].rank;
	uint32_t i;

	for (i = 0; i < at[from]; i++) {
		const struct coll_op *op = &coll_ops(s[from])[listed[from].order[i]];

		if (op->kind == COLL_OP_SEND && coll_peers(s[from])[op->peer].rank == to &&
		    op->slot == recv->slot)
			return true;
	}
	return false;
}

/* Each rank waits at a receive until its message was sent: whether all come to their ends. */
static bool all_end(struct coll_schedule *const *s, uint32_t ranks)
{
	uint32_t at[MOST] = { 0 }, left = ranks, rank;
	bool moved;

	do {
		moved = false;
		for (rank = 0, left = 0; rank < ranks; rank++) {
			while (at[rank] < s[rank]->ops) {
				const struct coll_op *op =
					&coll_ops(s[rank])[listed[rank].order[at[rank]]];

				if (op->kind == COLL_OP_RECV && !was_sent(s, at, rank, op))
					break;
				at[rank]++;
				moved = true;
			}
			left += at[rank] < s[rank]->ops;
		}
	} while (moved && left);
	return !left;
}

static void visit_lists(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	bool all = true;
	uint32_t rank;

	(void)argument;
	for (rank = 0; rank < ranks; rank++) {
		list_begin(&listed[rank], s[rank]);
		if (listed[rank].order)
			assert_list(&listed[rank]);
		all &= listed[rank].order != NULL;
	}
	lists += all;
	unlisted += !all;
	if (all && !all_end(s, ranks))
		fail_msg("%s with %u ranks: the lists wait for each other", name, ranks);
	for (rank = 0; rank < ranks; rank++)
		list_end(&listed[rank]);
}

static void lists_keep_waits_and_end(void **state)
{
	(void)state;
	assert_true(each_collective(MOST, visit_lists, NULL) > 100);
	assert_true(lists > 500);
	assert_true(unlisted > 10);	/* redundancy, circuits, many ops */
}

static void what_is_long_or_optional_has_no_list(void **state)
{
	struct coll_planned *long_one = exchange(STRAIGHT_MAX + 1), *optional = with_optional_receive(SMALL);

	(void)state;
	coll_order_make(long_one);
	coll_order_make(optional);
	assert_null(long_one->order);
	assert_null(optional->order);
	coll_planned_put(long_one);
	coll_planned_put(optional);
}

/* ---- execution ------------------------------------------------------------------------------- */

static uint32_t messages;		/* so many are in memory ... */
static uint32_t empty_looks;		/* ... after so many looks of 5 us */
static uint8_t value;			/* of the next one */
static struct coll_planned *planned;

static enum coll_look memory_look(struct coll_link *link, const struct coll_header *header,
				  const uint8_t **payload)
{
	static uint8_t bytes[LARGE];

	assert_int_equal(link->expected, 1);
	assert_int_equal(header->hash, HASH);
	if (empty_looks) {
		const uint64_t until = coll_now() + 5000;

		while (coll_now() < until)
			;
		empty_looks--;
		return COLL_LOOK_NOTHING;
	}
	if (!messages)
		return COLL_LOOK_NOTHING;
	memset(bytes, value, sizeof(bytes));
	*payload = bytes;
	return COLL_LOOK_MESSAGE;
}

static void memory_took(struct coll_link *link, const struct coll_header *header)
{
	(void)link;
	(void)header;
	messages--;
	value++;
}

static const struct coll_transport memory_transport = { .look = memory_look, .took = memory_took };

/* The plan is the group's latest, and has run before. */
static void plan(struct coll_planned *of)
{
	struct coll_run run = { .group = w.group, .planned = of, .in = w.in, .out = w.out };
	uint32_t rank, recvs = 0, i;

	planned = of;
	planned->call = coll_call_of(w.group, COLL_ALLREDUCE);
	coll_order_make(planned);
	assert_non_null(planned->order);
	w.group->latest[coll_call_place(coll_call_brief(&planned->call), LATEST_CALLS)] = 5;
	w.group->planned[5] = planned;
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);
	for (i = 0; i < planned->schedule->ops; i++) {
		const struct coll_op *op = &coll_ops(planned->schedule)[i];

		if (op->kind == COLL_OP_RECV)
			message_arrives(planned->links[op->peer], header_of(0, op->slot, op->bytes), 1);
		recvs += op->kind == COLL_OP_RECV;
	}
	for (rank = 1; rank < RANKS; rank++) {
		if (w.links[rank]->queue)
			message_leaves(w.links[rank]);
		w.links[rank]->transport = &memory_transport;
	}
	assert_null(run.exec);
	assert_non_null(planned->spare);
	memset(w.out, 0, sizeof(w.out));
	value = 10;
}

static int begin(void **state)
{
	(void)state;
	world_begin();
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (planned)
		coll_planned_forget(w.group);
	planned = NULL;
	world_end();
	return 0;
}

static struct coll_exec *call(void)
{
	w.context.engine.now = w.context.polled_at = coll_now();
	return coll_in_order_begin(planned, w.in, w.out);
}

static void assert_bytes(const uint8_t *data, uint8_t of, size_t bytes)
{
	while (bytes--)
		assert_int_equal(*data++, of);
}

static void it_is_done_without_the_engine(void **state)
{
	const uint64_t runs = w.context.counters.runs;
	struct coll_exec *exec;

	(void)state;
	plan(exchange(SMALL));
	w.sends_now = messages = 1;
	exec = call();
	assert_non_null(exec);
	assert_int_equal(exec->number, 1);
	assert_true(coll_in_order_execute(exec));
	assert_int_equal(w.asked.sent_now[1], 1);
	assert_int_equal(w.context.active, 0);
	assert_null(w.group->active);
	assert_int_equal(w.context.counters.runs, runs + 2);
	assert_int_equal(w.context.counters.sends, 2);
	assert_int_equal(w.context.counters.recvs, 2);
	assert_int_equal(w.links[1]->expected, 0);
	assert_int_equal(planned->references, 1);
	assert_ptr_equal(planned->spare, exec);
	assert_bytes(w.out, 10, SMALL);
	assert_bytes(w.out + SMALL, 0, SMALL);
}

/* The first `sends` and `recvs` of each kind are done in order, the others by the engine. */
static void engine_goes_on(struct coll_planned *of, uint32_t sends, uint32_t recvs)
{
	struct coll_run run = { .group = w.group, .local = true };
	struct coll_exec *exec;
	uint32_t i;

	plan(of);
	w.sends_now = sends;
	messages = recvs;
	exec = call();
	assert_non_null(exec);
	if (coll_in_order_execute(exec))
		return;
	coll_exec_adopt(&run, exec);
	assert_int_equal(run.planned->references, 3);	/* of cache, exec and run */
	for (i = 0; run.exec && i < of->schedule->ops; i++) {
		const struct coll_op *op = &coll_ops(of->schedule)[i];

		if (op->kind == COLL_OP_RECV && of->links[op->peer]->expected)
			message_arrives(of->links[op->peer], header_of(1, op->slot, op->bytes),
					value++);
	}
	for (i = 1; i < RANKS; i++)
		if (w.links[i]->queue)
			message_leaves(w.links[i]);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(w.context.active, 0);
	coll_planned_put(run.planned);
}

static void assert_quiet(void)
{
	uint32_t i;

	for (i = 1; i < RANKS; i++)
		assert_int_equal(w.links[i]->expected, 0);
	assert_int_equal(planned->references, 1);
}

static void the_engine_goes_on_after_each_op(void **state)
{
	uint32_t sends, recvs;

	for (sends = 0; sends < 2; sends++)
		for (recvs = 0; recvs < 2; recvs++) {
			engine_goes_on(exchange(SMALL), sends, recvs);
			assert_int_equal(w.asked.sent[1] + w.asked.sent_now[1], 2);
			assert_bytes(w.out, 10, SMALL);
			assert_quiet();
			end(state);
			begin(state);
		}
	for (recvs = 0; recvs < 3; recvs++) {
		engine_goes_on(gather(SMALL), 0, recvs);
		assert_bytes(w.out, 10, SMALL);
		assert_bytes(w.out + SMALL, 11, SMALL);
		assert_quiet();
		end(state);
		begin(state);
	}
	for (recvs = 0; recvs < 3; recvs++) {
		engine_goes_on(sum_of_two(4 * 5), 0, recvs);
		assert_bytes(w.out, 21, 4 * 5);
		assert_quiet();
		end(state);
		begin(state);
	}
}

/* What comes first is added to the rank's own, as it comes; what comes next stays what it is. */
static struct coll_planned *sum_and_other(uint64_t bytes)
{
	struct coll_build *b = schedule_begin(bytes, 2 * bytes);
	const uint64_t place = coll_emit_scratch(b, bytes);
	const uint32_t one = coll_emit_recv(b, 1, place, bytes);

	coll_emit_recv(b, 2, COLL_ADDRESS(COLL_OUT, bytes), bytes);
	coll_build_reduction(b, COLL_INT32, COLL_SUM, 0);
	coll_emit_after(b, one);
	coll_emit_reduce(b, COLL_ADDRESS(COLL_OUT, 0), COLL_ADDRESS(COLL_IN, 0), place, bytes);
	return schedule_end();
}

/* Of what is reduced as it comes the engine must not reduce again, nor what it finds in scratch. */
static void the_engine_goes_on_after_what_was_fused(void **state)
{
	uint32_t recvs;

	for (recvs = 0; recvs < 3; recvs++) {
		memset(w.in, 5, sizeof(w.in));
		engine_goes_on(sum_and_other(LARGE), 0, recvs);
		assert_non_null(planned->fused);
		assert_bytes(w.out, 15, LARGE);
		assert_bytes(w.out + LARGE, 11, LARGE);
		assert_quiet();
		end(state);
		begin(state);
	}
	for (recvs = 0; recvs < 3; recvs++) {	/* the marked one comes while the other is missing: it goes to scratch */
		engine_goes_on(sum_of_two(LARGE), 0, recvs);
		assert_non_null(planned->fused);
		assert_bytes(w.out, 21, LARGE);
		assert_quiet();
		end(state);
		begin(state);
	}
}

static void in_order_it_is_fused(void **state)
{
	uint64_t copied;

	(void)state;
	memset(w.in, 5, sizeof(w.in));
	plan(sum_and_other(LARGE));
	messages = 2;
	copied = w.context.counters.copied_bytes;
	assert_true(coll_in_order_execute(call()));
	assert_bytes(w.out, 15, LARGE);
	assert_bytes(w.out + LARGE, 11, LARGE);
	assert_int_equal(w.context.counters.copied_bytes - copied, LARGE);
}

/* What the engine, or somebody who wants to know more of each call, would miss. */
static void not_all_calls_are_executed_so(void **state)
{
	const struct coll_call same = coll_call_of(w.group, COLL_ALLREDUCE);
	struct coll_call_brief brief = coll_call_brief(&same);
	struct coll_call other;
	struct coll_exec *spare;

	(void)state;
	assert_null(coll_planned_before(w.group, brief));
	plan(exchange(SMALL));
	assert_ptr_equal(coll_planned_before(w.group, brief), planned);
	brief.count++;
	assert_null(coll_planned_before(w.group, brief));
	brief.count--;
	brief.collective = COLL_BARRIER;
	assert_null(coll_planned_before(w.group, brief));
	brief.collective = COLL_ALLREDUCE;
	other = planned->call;
	assert_ptr_equal(coll_planned_latest(w.group, &other, 0), planned);
	assert_null(coll_planned_latest(w.group, &other, 1));
	other.count++;
	assert_null(coll_planned_latest(w.group, &other, 0));
	w.group->costs_agreed++;	/* it would choose anew */
	assert_null(coll_planned_before(w.group, brief));
	w.group->costs_agreed--;
	planned->user_op = COLL_OWN_CALL;
	assert_null(coll_planned_before(w.group, brief));
	planned->user_op = 0;
	assert_null(coll_in_order_begin(planned, NULL, w.out));
	w.context.active = 1;
	assert_null(call());
	w.context.active = 0;
	w.context.progress_state = w.out;
	w.context.owner = pthread_self();
	assert_null(call());
	w.context.progress_state = NULL;
	w.context.inject = (struct coll_inject *)w.out;
	assert_null(call());
	w.context.inject = NULL;
	w.context.engine.neighbour.near = true;
	assert_null(call());
	w.context.engine.neighbour.near = false;
	w.group->surveyed = true;	/* the first survey is to begin */
	w.group->unsampled = 0;
	assert_null(call());
	w.group->surveyed = false;
	w.group->freed = true;
	assert_null(call());
	w.group->freed = false;
	w.group->state = GROUP_FAILED;
	assert_null(call());
	w.group->state = GROUP_OK;
	spare = planned->spare;
	planned->spare = NULL;
	assert_null(call());
	planned->spare = spare;
	w.context.engine.now = coll_now();
	w.context.polled_at = w.context.engine.now - 10 * MS;
	assert_null(coll_in_order_begin(planned, w.in, w.out));
	assert_int_equal(w.group->next_run, 1);
	w.sends_now = messages = 1;
	assert_true(coll_in_order_execute(call()));
}

/* The engine has taken it from memory before its receive started: it does not come again. */
static void a_kept_message_is_not_waited_for(void **state)
{
	struct coll_run run = { .group = w.group, .local = true };
	struct coll_exec *exec;

	(void)state;
	plan(exchange(SMALL));
	w.context.engine.spin_ns = 10 * COLL_SECOND;
	message_arrives(w.links[1], header_of(1, 0, SMALL), 33);
	assert_non_null(w.links[1]->kept);
	w.sends_now = 1;
	exec = call();
	assert_false(coll_in_order_execute(exec));
	assert_int_equal(w.context.engine.looks, 0);
	coll_exec_adopt(&run, exec);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_bytes(w.out, 33, SMALL);
	coll_planned_put(run.planned);
}

static void a_users_function_has_no_list(void **state)
{
	struct coll_build *b = schedule_begin(SMALL, SMALL);
	const uint64_t place = coll_emit_scratch(b, SMALL);
	struct coll_planned *with;

	(void)state;
	coll_emit_recv(b, 1, place, SMALL);
	coll_emit_join(b);
	coll_build_reduction(b, COLL_INT32, COLL_USER_REDUCTION, 0);
	coll_emit_reduce(b, COLL_ADDRESS(COLL_OUT, 0), COLL_ADDRESS(COLL_IN, 0), place, SMALL);
	with = schedule_end();
	coll_order_make(with);
	assert_null(with->order);
	coll_planned_put(with);
}

/*
 * Receives are looked at in turn. What is there then was not waited for, however long the rank was busy with the one
 * before: else the last in turn would be taken for the last that came.
 */
static void a_timed_call_tells_what_it_waited_for(void **state)
{
	struct coll_flight_page *page = w.context.flight.page;
	const struct coll_flight_timed *run = page->timed;
	struct coll_exec *exec;

	(void)state;
	memset(page->timed, 0, sizeof(page->timed));
	plan(gather(SMALL));
	w.context.engine.spin_ns = 10 * COLL_SECOND;
	page->joined = 1;
	messages = 2;
	empty_looks = 1;
	exec = call();
	assert_int_not_equal(exec->timed, 0);
	assert_true(coll_in_order_execute(exec));
	while (!run->began)
		run++;
	assert_int_equal(run->number, 1);
	assert_true(run->ended > run->began);
	assert_int_equal(run->exchanges, 2);
	assert_int_equal(run->with[0].peer, 1);
	assert_in_range(run->with[0].posted, 1, 5000 / COLL_FLIGHT_TICK);
	assert_true(run->with[0].arrived >= 5000 / COLL_FLIGHT_TICK);
	assert_int_equal(run->with[1].peer, 2);
	assert_int_equal(run->with[1].posted, run->with[1].arrived);
	assert_true(run->with[1].arrived >= run->with[0].arrived);
	page->joined = 0;
}

/* What waits for nothing is awaited from the run's begin, also by the engine when it goes on. */
static void a_timed_call_that_the_engine_ends_has_waited_before(void **state)
{
	struct coll_flight_page *page = w.context.flight.page;
	struct coll_run run = { .group = w.group, .local = true };
	struct coll_flight_timed *timed;
	struct coll_exec *exec;

	(void)state;
	memset(page->timed, 0, sizeof(page->timed));
	plan(gather(SMALL));
	page->joined = 1;
	exec = call();
	timed = &page->timed[exec->timed - 1];
	assert_false(coll_in_order_execute(exec));
	coll_exec_adopt(&run, exec);
	message_arrives(w.links[1], header_of(1, 0, SMALL), 1);
	message_arrives(w.links[2], header_of(1, 0, SMALL), 1);
	assert_null(run.exec);
	assert_int_equal(timed->with[0].posted, 1);
	assert_int_equal(timed->with[1].posted, 1);
	assert_true(timed->ended && timed->with[1].arrived >= timed->with[0].arrived);
	coll_planned_put(run.planned);
	page->joined = 0;
}

#define IN_ORDER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_keep_waits_and_end),
		IN_ORDER_TEST(what_is_long_or_optional_has_no_list),
		IN_ORDER_TEST(it_is_done_without_the_engine),
		IN_ORDER_TEST(the_engine_goes_on_after_each_op),
		IN_ORDER_TEST(the_engine_goes_on_after_what_was_fused),
		IN_ORDER_TEST(in_order_it_is_fused),
		IN_ORDER_TEST(not_all_calls_are_executed_so),
		IN_ORDER_TEST(a_kept_message_is_not_waited_for),
		IN_ORDER_TEST(a_users_function_has_no_list),
		IN_ORDER_TEST(a_timed_call_tells_what_it_waited_for),
		IN_ORDER_TEST(a_timed_call_that_the_engine_ends_has_waited_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
