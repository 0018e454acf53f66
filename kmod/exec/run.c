// SPDX-License-Identifier: GPL-2.0
/*
 * Executing a loaded schedule: ops that are ready become messages on links,
 * receives that links know of, or work done on the spot.
 */
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include <asm/fpu/api.h>

#include "core/reduce.h"
#include "device.h"

enum {
	FPU_SECTION = 16384,		/* bytes; preemption is off for some microseconds */
	INTEGER_SECTION = 1 << 18,
};

static const u64 deadline_default = 60 * NSEC_PER_SEC;

/* ---- memory ------------------------------------------------------------------ */

void kcoll_run_free(struct kcoll_running *run)
{
	kcoll_memory_put(run->buffer[COLL_SCRATCH]);
	kcoll_account(run->loaded->group->device, run->accounted, false);
	kvfree(run);
}

static struct kcoll_running *run_make(struct kcoll_loaded *loaded)
{
	const struct coll_schedule *s = loaded->schedule;
	struct kcoll_device *device = loaded->group->device;
	const u64 head = ALIGN(sizeof(struct kcoll_running), 32);
	const u64 sends = (u64)loaded->sends * sizeof(struct kcoll_sending);
	const u64 step = ALIGN(coll_step_bytes(&loaded->plan), 8);
	const u64 per_op = sizeof(u64) + sizeof(u32) + sizeof(u8);
	const u64 bytes = head + sends + step + s->ops * per_op;
	const u64 pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct kcoll_running *run;
	struct kcoll_memory *scratch;
	u32 i, sent = 0;
	void *memory;

	if (kcoll_account(device, pages, true))
		return ERR_PTR(-ENOMEM);
	run = kvzalloc(bytes, COLL_GFP);
	scratch = run ? kcoll_memory_make(device, s->buffer[COLL_SCRATCH]) : ERR_PTR(-ENOMEM);
	if (IS_ERR(scratch)) {
		kvfree(run);
		kcoll_account(device, pages, false);
		return ERR_CAST(scratch);
	}
	run->accounted = pages;
	run->loaded = loaded;
	INIT_LIST_HEAD(&run->fresh);
	run->buffer[COLL_SCRATCH] = scratch;
	memory = run;
	run->sends = memory + head;
	memory += head + sends;
	coll_step_init(&run->step, &loaded->plan, memory);
	run->got = memory + step;
	run->send_of = (u32 *)(run->got + s->ops);
	run->arrived = (u8 *)(run->send_of + s->ops);
	for (i = 0; i < s->ops; i++) {
		if (coll_ops(s)[i].kind != COLL_OP_SEND)
			continue;
		run->sends[sent].run = run;
		run->sends[sent].op = i;
		run->send_of[i] = sent++;
	}
	return run;
}

static struct kcoll_running *run_take(struct kcoll_loaded *loaded)
{
	struct kcoll_running *run = loaded->spare;

	if (!run)
		return run_make(loaded);
	loaded->spare = NULL;
	coll_step_reset(&run->step);
	memset(run->arrived, 0, loaded->schedule->ops);
	memset(run->got, 0, loaded->schedule->ops * sizeof(*run->got));
	run->over = false;
	run->told = false;
	return run;
}

/* Back to being a spare, or freed if there is one. */
static void run_give(struct kcoll_running *run)
{
	if (run->loaded->spare)
		kcoll_run_free(run);
	else
		run->loaded->spare = run;
}

/* ---- ends -------------------------------------------------------------------- */

struct kcoll_running *kcoll_run_find(struct kcoll_group *group, u32 number)
{
	struct kcoll_running *run;

	list_for_each_entry(run, &group->runs, node)
		if (run->number == number)
			return run;
	return NULL;
}

/* The word is set before the pages are let go: who polls it goes on at once. */
static void run_tell(struct kcoll_running *run)
{
	struct kcoll_group *group = run->loaded->group;

	if (run->told)
		return;
	run->told = true;
	kcoll_device_complete(group->device, run->word, run->status, group->failed_rank,
			      group->reporter);
	kcoll_memory_put(run->buffer[COLL_IN]);
	kcoll_memory_put(run->buffer[COLL_OUT]);
	run->buffer[COLL_IN] = NULL;
	run->buffer[COLL_OUT] = NULL;
}

void kcoll_run_maybe_home(struct kcoll_running *run)
{
	struct kcoll_loaded *loaded = run->loaded;

	if (!run->over || run->in_flight || run->stepping)
		return;
	run_tell(run);
	list_del(&run->node);
	loaded->running--;
	run_give(run);
	kcoll_loaded_maybe_free(loaded);
}

/* Those of runs from `first` on and before `end`. */
static void drop_early(struct kcoll_group *group, u32 first, u32 end)
{
	struct kcoll_early *early, *next;

	list_for_each_entry_safe(early, next, &group->early, node) {
		if (early->complete && early->header.run - first < end - first)
			kcoll_group_early_free(group, early);
	}
}

/*
 * What is still in flight after success lies in scratch, for it is optional
 * (core/check.c); the application has its buffers back.
 */
void kcoll_run_over(struct kcoll_running *run, int status)
{
	struct kcoll_group *group = run->loaded->group;

	run->over = true;
	run->status = status;
	list_del_init(&run->fresh);
	group->device->counters.runs++;
	drop_early(group, run->number, run->number + 1);
	if (!status)
		run_tell(run);
}

u32 kcoll_run_awaits(const struct kcoll_running *run)
{
	const struct coll_schedule *s = run->loaded->schedule;
	u32 op;

	for (op = 0; op < s->ops; op++) {
		const struct coll_op *o = &coll_ops(s)[op];

		if (o->kind == COLL_OP_RECV && run->step.state[op] == COLL_OP_STARTED &&
		    !run->arrived[op] && !(o->flags & COLL_OPTIONAL))
			return coll_op_rank(s, o);
	}
	for (op = 0; op < s->ops; op++)
		if (coll_ops(s)[op].kind == COLL_OP_SEND &&
		    run->step.state[op] == COLL_OP_STARTED)
			return coll_op_rank(s, &coll_ops(s)[op]);
	return COLL_NONE;
}

/* ---- ops ---------------------------------------------------------------------- */

static void *place(const struct kcoll_running *run, u64 place)
{
	u32 buffer = COLL_PLACE_BUFFER(place);

	return run->buffer[buffer]->address + run->offset[buffer] + COLL_PLACE_OFFSET(place);
}

/* In sections, so that the thread gives way between them. */
static void run_reduce(struct kcoll_running *run, const struct coll_op *op)
{
	void *result = place(run, op->result), *left = place(run, op->left);
	void *right = place(run, op->right);
	bool floats = coll_reduction_floats(op->type, op->reduction);
	u64 most = floats ? FPU_SECTION : INTEGER_SECTION, done, part;

	for (done = 0; done < op->bytes; done += part) {
		part = min(op->bytes - done, most);
		if (floats)
			kernel_fpu_begin();
		coll_reduce_local(op->type, op->reduction, result + done, left + done,
				  right + done, part);
		if (floats)
			kernel_fpu_end();
		cond_resched();
	}
}

/* The piece of a page that begins at `place`, of so many bytes at most. */
static struct bio_vec piece_at(const struct kcoll_running *run, u64 place, u64 bytes)
{
	u32 buffer = COLL_PLACE_BUFFER(place);
	struct bio_vec piece;

	kcoll_memory_bvecs(run->buffer[buffer], run->offset[buffer] + COLL_PLACE_OFFSET(place),
			   &bytes, &piece, 1);
	return piece;
}

/*
 * Page by page: to map the application's memory for it would cost more, and an interrupt
 * on every CPU when the mappings are flushed.
 */
static void run_copy(struct kcoll_running *run, const struct coll_op *op)
{
	u64 done, part;

	for (done = 0; done < op->bytes; done += part) {
		struct bio_vec to = piece_at(run, op->result + done, op->bytes - done);
		struct bio_vec from = piece_at(run, op->left + done, to.bv_len);

		part = from.bv_len;
		memcpy_page(to.bv_page, to.bv_offset, from.bv_page, from.bv_offset, part);
		cond_resched();
	}
}

static void run_send(struct kcoll_running *run, u32 index, const struct coll_op *op)
{
	struct kcoll_loaded *loaded = run->loaded;
	struct kcoll_link *link = loaded->links[op->peer];
	struct kcoll_sending *sending = &run->sends[run->send_of[index]];

	if (link->state == COLL_LINK_LEFT || link->state == COLL_LINK_LOST) {
		if (!(op->flags & COLL_OPTIONAL))
			kcoll_group_fail(loaded->group, -ECONNRESET, link->rank, COLL_NONE);
		return;
	}
	sending->header = (struct coll_header){
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = run->number,
		.slot = op->slot,
		.hash = loaded->hash,
		.bytes = op->bytes,
	};
	loaded->group->device->counters.sends++;
	run->in_flight++;
	kcoll_link_send(link, sending);
}

int kcoll_run_bvecs(struct kcoll_running *run, u32 op, u64 done, u64 *bytes, struct bio_vec *bvec,
		    int max)
{
	u64 place = coll_ops(run->loaded->schedule)[op].result;
	u32 buffer = COLL_PLACE_BUFFER(place);

	return kcoll_memory_bvecs(run->buffer[buffer],
				  run->offset[buffer] + COLL_PLACE_OFFSET(place) + done, bytes,
				  bvec, max);
}

void kcoll_run_write(struct kcoll_running *run, u32 op, u64 done, const u8 *from, u64 bytes)
{
	struct bio_vec piece;

	while (bytes) {
		u64 part = bytes;

		kcoll_run_bvecs(run, op, done, &part, &piece, 1);
		memcpy_to_page(piece.bv_page, piece.bv_offset, from, part);
		from += part;
		done += part;
		bytes -= part;
	}
}

static struct kcoll_early *find_early(const struct kcoll_running *run, u32 rank, u32 slot)
{
	struct kcoll_early *early;

	list_for_each_entry(early, &run->loaded->group->early, node)
		if (early->complete && early->rank == rank && early->header.run == run->number &&
		    early->header.slot == slot)
			return early;
	return NULL;
}

bool kcoll_run_needs(const struct kcoll_running *run, const struct kcoll_link *link)
{
	const struct coll_plan *plan = &run->loaded->plan;
	u32 peer = coll_peer_find(plan->schedule, link->rank), i;

	if (run->over || peer == COLL_NONE)
		return false;
	for (i = plan->first_recv[peer]; i < plan->first_recv[peer + 1]; i++) {
		u32 op = plan->recv[i];

		if (!run->arrived[op] && run->step.state[op] != COLL_OP_SKIPPED &&
		    !(coll_ops(plan->schedule)[op].flags & COLL_OPTIONAL) &&
		    !find_early(run, link->rank, coll_ops(plan->schedule)[op].slot))
			return true;
	}
	return false;
}

/* If its message has come before it, it is done. */
static bool take_early(struct kcoll_running *run, u32 index, const struct coll_op *op)
{
	struct kcoll_link *link = run->loaded->links[op->peer];
	struct kcoll_group *group = run->loaded->group;
	struct kcoll_early *early = find_early(run, link->rank, op->slot);

	if (!early)
		return false;
	if (early->header.hash != run->loaded->hash || early->header.bytes != op->bytes) {
		kcoll_group_fail(group, -EPROTO, link->rank, group->rank);
		return false;
	}
	kcoll_run_write(run, index, 0, early->data, op->bytes);
	kcoll_group_early_free(group, early);
	run->arrived[index] = 1;
	group->device->counters.recvs++;
	return true;
}

void kcoll_run_take_early(struct kcoll_running *run, u32 op)
{
	if (!take_early(run, op, &coll_ops(run->loaded->schedule)[op]))
		return;
	coll_step_done(&run->step, op);
	kcoll_run_step(run);
}

static void run_op(struct kcoll_running *run, u32 index)
{
	const struct coll_op *op = &coll_ops(run->loaded->schedule)[index];
	struct kcoll_link *link;

	run->loaded->group->device->counters.ops++;
	switch (op->kind) {
	case COLL_OP_SEND:
		run_send(run, index, op);
		return;
	case COLL_OP_RECV:
		if (take_early(run, index, op))
			break;
		link = run->loaded->links[op->peer];
		if ((link->state == COLL_LINK_LEFT || link->state == COLL_LINK_LOST) &&
		    !(op->flags & COLL_OPTIONAL))
			kcoll_group_fail(run->loaded->group, -ECONNRESET, link->rank, COLL_NONE);
		return;
	case COLL_OP_REDUCE:
		run_reduce(run, op);
		break;
	case COLL_OP_COPY:
		run_copy(run, op);
		break;
	default:	/* connect, release: who uses sockets has its peers always */
		break;
	}
	coll_step_done(&run->step, index);
}

void kcoll_run_step(struct kcoll_running *run)
{
	u32 op;

	run->stepping = true;
	while (!run->over && (op = coll_step_next(&run->step)) != COLL_NONE)
		run_op(run, op);
	if (!run->over && coll_step_finished(&run->step) && !run->step.error)
		kcoll_run_over(run, 0);
	run->stepping = false;
	kcoll_run_maybe_home(run);
}

void kcoll_run_received(struct kcoll_running *run, u32 op)
{
	run->loaded->group->device->counters.recvs++;
	if (!run->over) {
		coll_step_done(&run->step, op);
		kcoll_run_step(run);
	} else {
		kcoll_run_maybe_home(run);
	}
}

void kcoll_run_sent(struct kcoll_running *run, struct kcoll_sending *sending)
{
	run->in_flight--;
	if (!run->over) {
		coll_step_done(&run->step, sending->op);
		kcoll_run_step(run);
	} else {
		kcoll_run_maybe_home(run);
	}
}

/* ---- start -------------------------------------------------------------------- */

static struct kcoll_memory *find_buffer(struct kcoll_loaded *loaded, u32 which,
					const struct coll_device_place *asked)
{
	const u64 bytes = loaded->schedule->buffer[which];
	struct kcoll_device *device = loaded->group->device;
	struct kcoll_memory *buffer;

	if (asked->zero)
		return ERR_PTR(-EINVAL);
	if (asked->buffer == COLL_NONE)
		return kcoll_memory_pin(device, asked->address, bytes, which == COLL_OUT);
	buffer = idr_find(&device->buffers, asked->buffer);
	if (!buffer)
		return ERR_PTR(-ENOENT);
	if (asked->address > buffer->bytes || bytes > buffer->bytes - asked->address)
		return ERR_PTR(-ERANGE);
	if (which == COLL_OUT && !buffer->writable)
		return ERR_PTR(-EACCES);
	kref_get(&buffer->ref);
	return buffer;
}

static int bind(struct kcoll_running *run, u32 which, const struct coll_device_place *asked)
{
	struct kcoll_memory *buffer = find_buffer(run->loaded, which, asked);
	int error;

	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	error = run->loaded->touched & 1u << which ? kcoll_memory_map(buffer) : 0;
	if (error) {
		kcoll_memory_put(buffer);
		return error;
	}
	run->buffer[which] = buffer;
	run->offset[which] = asked->buffer == COLL_NONE ? 0 : asked->address;
	return 0;
}

static u64 deadline_from(u64 asked, u64 now)
{
	return max(asked ?: now + deadline_default, now);
}

int kcoll_run_deadline(struct kcoll_group *group, const struct coll_device_deadline *asked)
{
	struct kcoll_running *run = kcoll_run_find(group, asked->number);

	if (!run || run->over)
		return -ENOENT;
	run->deadline = deadline_from(asked->deadline, run->started);
	run->next_ping = run->started + (run->deadline - run->started) / 2;
	group->device->deadline = 0;	/* look again when */
	kcoll_runner_kick(group->device);
	return 0;
}

int kcoll_run_start(struct kcoll_loaded *loaded, const struct coll_device_run *asked)
{
	struct kcoll_group *group = loaded->group;
	struct kcoll_device *device = group->device;
	struct kcoll_running *run;
	struct kcoll_link *link;
	unsigned long rank;
	int error;

	if (group->error)
		return group->error;
	if ((s32)(asked->number - group->next_run) < 0)
		return -ESTALE;
	run = run_take(loaded);
	if (IS_ERR(run))
		return PTR_ERR(run);
	error = bind(run, COLL_IN, &asked->in) ?: bind(run, COLL_OUT, &asked->out);
	if (error) {
		kcoll_memory_put(run->buffer[COLL_IN]);
		run->buffer[COLL_IN] = NULL;
		run_give(run);
		return error;
	}
	/* Of runs that the program did itself nobody wants what came here. */
	drop_early(group, group->next_run, asked->number);
	run->number = asked->number;
	group->next_run = asked->number + 1;
	run->word = asked->word;
	run->started = ktime_get_ns();
	run->deadline = deadline_from(asked->deadline, run->started);
	run->next_ping = run->started + (run->deadline - run->started) / 2;
	device->deadline = min(device->deadline, run->next_ping);
	/* Whoever polls sees no result of the run before. */
	smp_store_release(&device->shared->word[run->word].state, COLL_DEVICE_RUNNING);
	loaded->running++;
	list_add_tail(&run->node, &group->runs);
	list_add_tail(&run->fresh, &device->fresh);
	/* Whoever stopped reading for want of room may find its messages awaited now. */
	xa_for_each(&group->links, rank, link)
		if (link->stalled)
			kcoll_link_wake(link);
	return 0;
}
