// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * All ranks of a collective in one process. Events that can happen (a rank takes an op from its
 * step, a local op executes, a message's bytes are read, the message arrives, a send or receive is
 * done) are in a pool and are taken in random order. So messages overtake each other within and
 * across pairs, arrive before their receive, and an op is done long after its start. That is more
 * disorder than any engine makes: an engine executes a local op at once.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/match.h"
#include "verify.h"

enum { EMIT_BYTES = 1 << 14 };	/* initial bytes for one rank's schedule */

u64 dice_next(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

u32 dice_below(u64 *state, u32 limit)
{
	return (dice_next(state) >> 32) * limit >> 32;
}

void world_fail(struct world *w, u32 rank, u32 op, const char *format, ...)
{
	struct verify_failure *f = &w->failure;
	va_list arguments;
	int used = 0;

	if (f->failed)
		return;
	f->failed = true;
	f->has_rank = rank != COLL_NONE;
	f->rank = rank;
	f->op = op;
	if (rank != COLL_NONE)
		used += snprintf(f->words, sizeof(f->words), "rank %u", rank);
	if (op != COLL_NONE)
		used += snprintf(f->words + used, sizeof(f->words) - used, ", op %u", op);
	if (used)
		used += snprintf(f->words + used, sizeof(f->words) - used, ": ");
	va_start(arguments, format);
	vsnprintf(f->words + used, sizeof(f->words) - used, format, arguments);
	va_end(arguments);
}

/* ---- the pool ----------------------------------------------------------- */

static void pool_add(struct pool *pool, struct item item)
{
	if (pool->count == pool->capacity) {
		pool->capacity = pool->capacity ? 2 * pool->capacity : 256;
		pool->item = memory_grow(pool->item, pool->capacity, sizeof(item));
	}
	pool->item[pool->count++] = item;
}

static void world_apply(struct world *w, enum item_kind kind, u32 rank, u32 op)
{
	/* The network belongs to no rank: it continues while a rank is slow or frozen. */
	bool slow = kind != ITEM_READ && kind != ITEM_UP && w->rank[rank].slow;

	pool_add(slow ? &w->slow : &w->now, (struct item){ kind, rank, op });
}

void world_add_item(struct world *w, enum item_kind kind, u32 rank, u32 op)
{
	world_apply(w, kind, rank, op);
}

/* Takes a random event from the pool; false: it is empty. */
static bool world_take(struct world *w, struct item *item)
{
	while (w->now.count || w->slow.count) {
		struct pool *pool = w->now.count ? &w->now : &w->slow;
		u64 random = dice_next(&w->random);
		u32 i = pool->count - 1;

		if ((random & 255) >= w->last_first)
			i = (random >> 32) * pool->count >> 32;
		*item = pool->item[i];
		pool->item[i] = pool->item[--pool->count];
		if (!world_holds_back(w, item) && (item->kind == ITEM_READ || item->kind == ITEM_UP ||
					       !w->rank[item->rank].frozen))
			return true;
		pool_add(&w->frozen, *item);
	}
	return false;
}

/* ---- a rank steps ------------------------------------------------------- */

/* Releases senders that waited for a receive that will never start. */
static void release_parked(struct world *w, u32 rank)
{
	struct verify_rank *r = &w->rank[rank];
	u32 i;

	for (i = 0; i < r->plan.recvs; i++) {
		u32 op = r->plan.recv[i];

		if (!r->mail[op].parked)
			continue;
		r->mail[op].parked = false;
		world_apply(w, ITEM_READ, world_partner(w, rank, op), r->counterpart[op]);
	}
}

static void pull_later(struct world *w, u32 rank)
{
	struct verify_rank *r = &w->rank[rank];

	if (r->pulling || coll_step_idle(&r->step))
		return;
	r->pulling = true;
	world_apply(w, ITEM_PULL, rank, COLL_NONE);
}

static void op_done(struct world *w, u32 rank, u32 op)
{
	struct verify_rank *r = &w->rank[rank];

	coll_step_done(&r->step, op);
	if (coll_step_finished(&r->step) && !r->finished) {
		r->finished = true;
		release_parked(w, rank);
	}
	pull_later(w, rank);
}

/* The bytes leave the sender. */
static void read_message(struct world *w, u32 rank, u32 op)
{
	const struct coll_op *send = world_op(w, rank, op);
	const u32 to = world_partner(w, rank, op), recv = w->rank[rank].counterpart[op];
	const size_t elements = send->bytes / ELEMENT;
	u32 *content = arena_get(&w->arena, elements, sizeof(u32));

	if (elements)
		memcpy(content, world_symbols(w, rank, send->left), elements * sizeof(u32));
	w->rank[to].mail[recv].content = content;
	world_apply(w, ITEM_ARRIVE, to, recv);
}

static void begin_send(struct world *w, u32 rank, u32 op)
{
	const u32 to = world_partner(w, rank, op), recv = w->rank[rank].counterpart[op];
	struct verify_rank *receiver = &w->rank[to];
	enum send_mode mode = w->mode;

	links_begin(w, rank, to, world_op(w, rank, op)->bytes);
	verify_circuits_send(w, rank, op);
	if (mode == SEND_MIXED)
		mode = dice_below(&w->random, SEND_MIXED);
	if (mode == SEND_EARLY) {
		read_message(w, rank, op);
		op_done(w, rank, op);
	} else if (mode == SEND_LATE && !receiver->finished &&
		   receiver->step.state[recv] <= COLL_OP_READY) {
		receiver->mail[recv].parked = true;
	} else {
		world_apply(w, ITEM_READ, rank, op);
	}
}

/* From now on the network may write to the buffer at any time. */
static void begin_recv(struct world *w, u32 rank, u32 op)
{
	const struct coll_op *recv = world_op(w, rank, op);
	struct mail *mail = &w->rank[rank].mail[op];

	if (recv->bytes)
		memset(world_symbols(w, rank, recv->result), 0,
		       recv->bytes / ELEMENT * sizeof(u32));
	if (mail->unexpected)
		world_apply(w, ITEM_ARRIVE, rank, op);
	if (mail->parked) {
		mail->parked = false;
		world_apply(w, ITEM_READ, world_partner(w, rank, op),
			    w->rank[rank].counterpart[op]);
	}
}

static void begin_op(struct world *w, u32 rank, u32 op)
{
	struct verify_rank *r = &w->rank[rank];

	switch (world_op(w, rank, op)->kind) {
	case COLL_OP_SEND:
		begin_send(w, rank, op);
		break;
	case COLL_OP_RECV:
		begin_recv(w, rank, op);
		break;
	case COLL_OP_CONNECT:
		verify_circuits_connect(w, rank, op);
		break;
	default:
		world_apply(w, ITEM_LOCAL, rank, op);
		break;
	}
	if (r->key[op] && !--r->keys_left && r->to_freeze)
		r->frozen = true;
}

static void world_pull(struct world *w, u32 rank)
{
	struct verify_rank *r = &w->rank[rank];
	u32 op = coll_step_next(&r->step);

	r->pulling = false;
	if (op != COLL_NONE)
		begin_op(w, rank, op);
	if (!r->finished)
		pull_later(w, rank);
}

/* ---- local ops ---------------------------------------------------------- */

static void do_local(struct world *w, u32 rank, u32 op)
{
	/*
	 * After the end of the run the application owns its buffers; no engine defers a local op.
	 */
	if (w->rank[rank].finished)
		return;
	if (world_op(w, rank, op)->kind == COLL_OP_RELEASE)
		verify_circuits_release(w, rank, op);
	if (world_op(w, rank, op)->bytes)
		world_compute(w, rank, op);
	op_done(w, rank, op);
}

/* ---- messages ----------------------------------------------------------- */

static void world_arrive(struct world *w, u32 rank, u32 expected)
{
	const struct coll_op *recv = world_op(w, rank, expected);
	struct mail *mail = &w->rank[rank].mail[expected];
	u32 op = COLL_NONE;

	switch (coll_match(&w->rank[rank].step, world_partner(w, rank, expected), recv->slot,
			   recv->bytes, &op)) {
	case COLL_MATCH_POSTED:
		if (recv->bytes)
			memcpy(world_symbols(w, rank, recv->result), mail->content,
			       recv->bytes / ELEMENT * sizeof(u32));
		world_apply(w, ITEM_RECEIVED, rank, op);
		break;
	case COLL_MATCH_UNEXPECTED:
		mail->unexpected = true;
		break;
	case COLL_MATCH_STALE:
		break;
	default:
		world_fail(w, rank, expected, "a message for it is not accepted");
		break;
	}
	if (op != expected)
		world_fail(w, rank, expected, "its message was matched with op %u", op);
}

static void world_perform(struct world *w, const struct item *item)
{
	switch ((enum item_kind)item->kind) {
	case ITEM_PULL:
		world_pull(w, item->rank);
		break;
	case ITEM_LOCAL:
		do_local(w, item->rank, item->op);
		break;
	case ITEM_READ:
		read_message(w, item->rank, item->op);
		world_apply(w, ITEM_SENT, item->rank, item->op);
		break;
	case ITEM_RECEIVED:
		links_end(w, world_partner(w, item->rank, item->op), item->rank,
			  world_op(w, item->rank, item->op)->bytes);
		/* fall through */
	case ITEM_SENT:
		op_done(w, item->rank, item->op);
		break;
	case ITEM_ARRIVE:
		verify_circuits_arrive(w, item->rank, item->op);
		world_arrive(w, item->rank, item->op);
		break;
	case ITEM_UP:
		op_done(w, item->rank, item->op);
		break;
	}
}

void world_drain(struct world *w)
{
	struct item item;

	while (!w->failure.failed && world_take(w, &item))
		world_perform(w, &item);
}

void world_thaw(struct world *w)
{
	u32 i;

	for (i = 0; i < w->ranks; i++)
		w->rank[i].frozen = w->rank[i].to_freeze = false;
	w->cut_off = COLL_NONE;
	while (w->frozen.count)
		pool_add(&w->now, w->frozen.item[--w->frozen.count]);
}

/* ---- a case ------------------------------------------------------------- */

/* Memory for emission. Small if possible: the builder clears a part of it. */
static void emit_reserve(struct world *w, size_t bytes)
{
	w->emit_bytes = bytes;
	if (bytes <= w->emit_capacity)
		return;
	w->emit_memory = memory_grow(w->emit_memory, bytes, 1);
	w->emit_capacity = bytes;
}

static struct coll_schedule *emit_schedule(struct world *w, u32 rank)
{
	const struct verify_case *c = w->vcase;
	struct coll_schedule *s, *copy;
	struct coll_call call;
	int error = -ENOSPC;

	layout_call(w, rank, &call);
	while (error == -ENOSPC) {
		error = coll_algo_emit(c->algo, &call, &c->tuning, w->emit_memory, w->emit_bytes,
				       &s);
		if (error == -ENOSPC && w->emit_bytes < 1UL << 32) {
			emit_reserve(w, 4 * w->emit_bytes);
			continue;
		}
		if (error) {
			world_fail(w, rank, COLL_NONE, "it emits no schedule: %s",
				   strerror(-error));
			return NULL;
		}
	}
	copy = arena_get(&w->arena, 1, s->bytes);
	return memcpy(copy, s, s->bytes);
}

static void prepare_rank(struct world *w, u32 rank)
{
	struct verify_rank *r = &w->rank[rank];
	const struct coll_schedule *s = r->schedule;
	u32 i;

	coll_plan_init(&r->plan, s, arena_get(&w->arena, 1, coll_plan_bytes(s)));
	coll_step_init(&r->step, &r->plan, arena_get(&w->arena, 1, coll_step_bytes(&r->plan)));
	for (i = 0; i < COLL_BUFFERS; i++)
		r->memory[i] = arena_get(&w->arena, s->buffer[i] / ELEMENT, sizeof(u32));
	r->mail = arena_get(&w->arena, s->ops, sizeof(*r->mail));
	r->key = arena_get_zero(&w->arena, s->ops, sizeof(bool));
	r->circuit_end = w->ports ? arena_get(&w->arena, w->ranks, sizeof(*r->circuit_end)) : NULL;
	r->coming = w->cluster ? arena_get(&w->arena, w->ranks, sizeof(u32)) : NULL;
	if (r->want.in_elements)
		memcpy(r->memory[COLL_IN], r->want.in, r->want.in_elements * sizeof(u32));
}

static void reset_rank(struct world *w, u32 rank)
{
	struct verify_rank *r = &w->rank[rank];
	const struct coll_schedule *s = r->schedule;

	coll_step_reset(&r->step);
	if (r->want.out_elements)
		memcpy(r->memory[COLL_OUT], r->want.out, r->want.out_elements * sizeof(u32));
	memset(r->memory[COLL_SCRATCH], 0, s->buffer[COLL_SCRATCH] / ELEMENT * sizeof(u32));
	memset(r->mail, 0, s->ops * sizeof(*r->mail));
	r->pulling = r->frozen = r->to_freeze = false;
	r->finished = coll_step_finished(&r->step);
	r->slow = false;
	r->keys_left = r->keys;
}

void world_reset(struct world *w)
{
	static const u32 last_first[] = { 0, 0, 128, 255 };
	const bool some_slow = !dice_below(&w->random, 3);
	u32 i;

	w->now.count = w->slow.count = w->frozen.count = 0;
	w->cut_off = COLL_NONE;
	links_reset(w);
	verify_circuits_reset(w);
	w->last_first = last_first[dice_below(&w->random, 4)];
	for (i = 0; i < w->ranks; i++) {
		reset_rank(w, i);
		w->rank[i].slow = some_slow && dice_below(&w->random, 2);
	}
	for (i = 0; i < w->ranks; i++)
		if (!w->rank[i].finished)
			pull_later(w, i);
	w->schedules += w->ranks;
}

/* All ranks must refuse a call, or none: else some would wait forever. */
static void emit_all_ranks(struct world *w)
{
	const char *why = NULL;
	u32 refusing = 0, i;

	for (i = 0; i < w->ranks; i++) {
		struct coll_call call;
		const char *here;

		layout_call(w, i, &call);
		here = coll_algo_refuses(w->vcase->algo, &call, &w->vcase->tuning);
		refusing += here != NULL;
		why = here ? here : why;
	}
	w->refused = refusing == w->ranks;
	if (refusing && !w->refused)
		world_fail(w, COLL_NONE, COLL_NONE, "%u of %u ranks refuse the call: %s", refusing,
			   w->ranks, why);
}

static void emit_all(struct world *w)
{
	u32 i;

	w->rank = arena_get_zero(&w->arena, w->ranks, sizeof(*w->rank));
	emit_reserve(w, EMIT_BYTES);
	layout_blocks(w);
	emit_all_ranks(w);
	if (w->refused || w->failure.failed)
		return;
	layout_images(w);
	for (i = 0; i < w->ranks && !w->failure.failed; i++) {
		struct verify_rank *r = &w->rank[i];

		r->schedule = emit_schedule(w, i);
		if (!r->schedule)
			return;
	}
}

static void plain_run(struct world *w)
{
	world_reset(w);
	world_drain(w);
	world_judge(w);
}

static void run_case(struct world *w, const struct verify_options *options)
{
	const enum coll_collective collective = w->vcase->algo->collective;
	u32 first = dice_below(&w->random, SEND_MODES), i;

	for (i = 0; i < w->vcase->runs && !w->failure.failed; i++) {
		struct arena_mark mark = arena_mark(&w->arena);

		w->mode = (first + i) % SEND_MODES;
		plain_run(w);
		if (!w->failure.failed)
			arena_release(&w->arena, mark);
	}
	if (collective == COLL_BARRIER)
		barrier_run(w);
	if (w->vcase->frozen_exchanges)
		rescue_run(w, options);
}

/* The same for the same case, whatever other cases exist. */
static u64 case_seed(const struct verify_case *c, u64 seed)
{
	const u64 numbers[] = {
		seed,
		c->algo->collective,
		c->ranks,
		c->root,
		c->count,
		c->tuning.redundancy,
		c->tuning.segment,
		c->tuning.bound,
		c->tuning.ports,
		c->frozen_exchanges,
		c->tuning.lanes,
		c->tuning.relays,
		c->tuning.across,
		(u64)c->tuning.late[0] << 32 | c->tuning.late[1],
		c->cluster[0],
		c->cluster[1],
		c->cluster[2],
		c->dealt,
		c->shape,
		c->in_place,
		c->commutative,
		c->root_counts,
		c->tuning.ahead,
		c->tuning.radix,
		c->tuning.replicas,
		c->tuning.wavelengths,
		c->tuning.simplex,
		c->ports_differ,
		c->topology,
		c->nodes,
		c->kinds,
		c->lengthy,
	};
	u64 state = 0;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		state ^= numbers[i];
		state = dice_next(&state);
	}
	return state;
}

bool verify_case(struct world *w, const struct verify_case *c,
		 const struct verify_options *options)
{
	u32 i;

	arena_release(&w->arena, (struct arena_mark){ 0 });
	symbols_reset(&w->symbols, c->ranks);
	memset(&w->failure, 0, sizeof(w->failure));
	w->vcase = c;
	w->ranks = c->ranks;
	w->random = case_seed(c, options->seed);
	w->mode = w->random % SEND_MODES;
	emit_all(w);
	if (w->refused)
		return true;
	if (!w->failure.failed && options->plant)
		w->planted += plant_defect(w, options->plant);
	if (w->failure.failed)
		return false;
	for (i = 0; i < w->ranks; i++) {
		struct verify_rank *r = &w->rank[i];

		r->counterpart = arena_get(&w->arena, r->schedule->ops, sizeof(u32));
		r->redundant = arena_get_zero(&w->arena, r->schedule->ops, sizeof(bool));
	}
	match_schedules(w);
	match_nodes(w);
	if (w->failure.failed)
		return false;
	for (i = 0; i < w->ranks; i++)
		prepare_rank(w, i);
	run_case(w, options);
	return !w->failure.failed;
}

const char *case_print(const struct verify_case *c, char *text, size_t bytes)
{
	static const char *const shapes[SHAPES] = { "", ", unequal blocks", ", one rank has all" };
	char tuning[120], frozen[80] = "", clusters[120] = "";
	u32 used = 0, i;

	coll_tuning_print(&c->tuning, tuning, sizeof(tuning));
	if (c->frozen_exchanges && coll_algo_has_option(c->algo, "replicas"))
		snprintf(frozen, sizeof(frozen), ", ranks of each node frozen");
	else if (c->frozen_exchanges)
		snprintf(frozen, sizeof(frozen), ", %sranks frozen after exchange %u",
			 c->tuning.late[0] == COLL_NONE ? "" : "late ", c->frozen_exchanges);
	for (i = 0; i < CLUSTERS_MAX && c->cluster[i]; i++)
		used += snprintf(clusters + used, sizeof(clusters) - used, "%s%u",
				 i ? "+" : c->dealt ? " dealt " : " in ", c->cluster[i]);
	if (c->topology)
		snprintf(clusters, sizeof(clusters), " in %snodes%s of topology %llu",
			 c->kinds & 1 << COLL_LEVEL_DOMAIN ? "domains and " : "",
			 c->kinds & 1 << COLL_LEVEL_CLUSTER ? " and clusters" : "",
			 (unsigned long long)c->topology);
	snprintf(text, bytes, "%s %s: %u ranks%s, root %u, count %llu%s%s%s%s%s%s%s%s",
		 coll_collective_names[c->algo->collective], c->algo->name, c->ranks, clusters,
		 c->root, (unsigned long long)c->count, shapes[c->shape],
		 c->in_place ? ", in place" : "", c->commutative ? "" : ", in rank order",
		 c->root_counts ? ", counts on the root only" : "", *tuning ? ", " : "", tuning,
		 c->ports_differ ? ", fewer on some" : "", frozen);
	return text;
}

void world_free(struct world *w)
{
	arena_free(&w->arena);
	symbols_free(&w->symbols);
	memory_free(w->now.item);
	memory_free(w->slow.item);
	memory_free(w->frozen.item);
	memory_free(w->emit_memory);
}
