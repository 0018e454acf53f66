// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Blocking calls that the MPI does faster are handed to it. What is faster is tried in the job: for
 * each communicator, collective and size (a class: sizes of the same power of two), on all ranks in
 * the same calls of the class. After the first 16 calls, which are libcoll's,
 *
 *	libcoll  8 calls
 *	the MPI  2 8 8
 *	libcoll        8 8
 *	the MPI            8
 *
 * (of 64 KB and more: after 4, blocks of 3). Then the ranks compare their clocks, and all come to the
 * same verdict: a call takes from the begin of its last rank to the end of its last. The first call of a
 * block is not counted: it finds what the other library left in the caches and under way. Of seven others the
 * longest is not, either. The MPI gets a class if each of its blocks took less than each of libcoll's and its
 * median is 10 % below; libcoll gets it back by the same rule. Trials become rarer as they confirm each
 * other.
 *
 * An MPI that polls loses whole turns of the scheduler where something else wants its core. So a trial
 * ends early if the MPI needs four times as long (and 20 us), and the next of the communicator waits until the
 * loss is a small part of what its calls take. Of calls that were handed over some are timed, and
 * libcoll gets them back at once if they take twice its time.
 *
 * Times are compared by an allreduce of libcoll's, whose result has the same bits on all ranks. Only
 * communicators of one node do all this (board.c), and only where no option asks for what the MPI has not.
 * Which calls are in question depends on arguments that are equal on all ranks. "auto" leaves those
 * with libcoll whose result could have other bits in the other library: two sums of the same numbers
 * in one job would differ.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collmpi.h"
#include "shim.h"
#include "verdict.h"

enum {
	BLOCKS = 2 * TRIAL_BLOCKS + 1,
	CALLS = 50,		/* of a trial */
	PROBE = 1,		/* the short block */
	LONG_LOG2 = 17,		/* 64 KB and more: fewer calls */
	OFTEN = 16,		/* trials of short calls are so many times as many calls apart */
	PAUSE_MOST = 65536,	/* calls between two trials; checks are sixty-four times as often */
	SAMPLE = 8,		/* of the handed calls one in so many is timed */
};

/* Of the blocks above: whether the MPI executes it. */
static const bool of_mpi[BLOCKS] = { false, true, true, true, false, false, true };

struct span {			/* CLOCK_MONOTONIC, which the node's ranks share; ns */
	uint64_t began, ended;
};

struct class {
	struct class *next;
	enum which which;
	int log2;
	bool handed;		/* outside of trials */
	uint32_t calls;		/* since the latest trial */
	uint32_t due;		/* ... after which the next one may begin */
	uint32_t pause;		/* `due` of the one after that */
	int trial;		/* calls of the trial under way, or -1 */
	struct span spans[CALLS];	/* this rank's, of the trial's calls */
	/* Of handed calls, since the latest check. */
	uint32_t unchecked, check_after, samples;
	uint64_t sampled;	/* ns, of this rank */
	double own;		/* ... and such a time of libcoll's calls, of the latest verdict: the slowest rank's mean */
};

struct memo hand_memos[WHICH_COUNT];

static uint32_t may;		/* bit per enum which: not asked of libcoll on any rank */
static double scale = 1;	/* for tests: of libcoll's times */

int collmpi_scale_trials(double factor)
{
	scale = factor;
	return shim.on && may;
}


/* ---- which calls are in question ---------------------------------------- */

/*
 * Reductions that may be handed over. Never small integers, logical operations and unsigned orders, which
 * the MPIs of Debian 12 get wrong or refuse. `rounded`: those too whose bits depend on the order.
 */
static bool reduction_fits(const struct call *call, bool rounded)
{
	const uint32_t sums = 1u << COLL_SUM | 1u << COLL_PROD;
	const uint32_t orders = 1u << COLL_MIN | 1u << COLL_MAX;
	const uint32_t bits = 1u << COLL_BAND | 1u << COLL_BOR | 1u << COLL_BXOR;
	uint32_t fit = 0;

	if (call->coll_op >= COLL_REDUCTIONS)
		return rounded;		/* a function, maybe the program's own */
	switch ((int)call->coll_type) {
	case COLL_INT32:
	case COLL_INT64:
		fit = sums | orders | bits;
		break;
	case COLL_UINT32:
	case COLL_UINT64:
		fit = sums | bits;
		break;
	case COLL_FLOAT:
	case COLL_DOUBLE:	/* two numbers have one sum (nan.c), but zeros two signs, and a NaN no order */
		fit = rounded ? sums | orders : call->met->ranks == 2 ? sums : 0;
		break;
	case COLL_COMPLEX_FLOAT:
	case COLL_COMPLEX_DOUBLE:
		fit = rounded ? sums : 0;
		break;
	}
	return fit >> call->coll_op & 1;
}

static bool hand_fits(const struct call *call)
{
	if (!(may >> call->which & 1) || call->met->keeps || call->met->ranks < 2)
		return false;
	return !which_reduces(call->which) ||
	       reduction_fits(call, shim.settings.hand == HAND_ALL);
}

/* Sums and products that this rank gets, and whose bits libcoll promises; not what is only copied. */
static size_t float_sums(const struct call *call)
{
	if (!which_reduces(call->which) || shim.settings.hand == HAND_ALL ||
	    ((int)call->coll_type != COLL_FLOAT && (int)call->coll_type != COLL_DOUBLE))
		return 0;
	switch (call->which) {
	case WHICH_Reduce:
		return call->root == call->met->rank ? call->out_count : 0;
	case WHICH_Reduce_scatter:
		return count_at(call, call->out_counts, call->met->rank);
	case WHICH_Scan:
		return call->met->rank ? call->out_count : 0;
	case WHICH_Exscan:
		return 0;
	default:
		return call->out_count;
	}
}

/* Of the vector or of a block: what MPI requires to be equal on all ranks. */
static uint64_t call_bytes(const struct call *call)
{
	const bool root = call->root == call->met->rank;
	MPI_Count count = 0;
	int i;

	switch (call->which) {
	case WHICH_Barrier:
		return 0;
	case WHICH_Gather:
		return root ? type_bytes(call->out_count, call->out_type) :
			      type_bytes(call->in_count, call->in_type);
	case WHICH_Scatter:
		return root ? type_bytes(call->in_count, call->in_type) :
			      type_bytes(call->out_count, call->out_type);
	case WHICH_Allgatherv:
	case WHICH_Reduce_scatter:
		for (i = 0; i < call->met->ranks; i++)
			count += count_at(call, call->out_counts, i);
		return type_bytes(count, call->out_type);
	default:
		return type_bytes(call->out_count, call->out_type);
	}
}

/* ---- classes ------------------------------------------------------------ */

static bool class_long(const struct class *class)
{
	return class->log2 >= LONG_LOG2;
}

static uint32_t class_scaled(const struct class *class, uint32_t calls)
{
	return class_long(class) ? calls / OFTEN : calls;
}

static struct class *class_make(struct comm *comm, enum which which, int log2)
{
	struct class *class = calloc(1, sizeof(*class));

	if (!class)
		shim_no_memory();
	class->which = which;
	class->log2 = log2;
	class->due = class_long(class) ? 4 : 16;
	class->pause = class_scaled(class, 256);
	class->trial = -1;
	class->next = comm->classes;
	comm->classes = class;
	return class;
}

/* The latest is the first: most calls are of few classes. */
static struct class *class_of(struct comm *comm, enum which which, int log2)
{
	struct class **slot = &comm->classes, *class;

	while ((class = *slot) && (class->which != which || class->log2 != log2))
		slot = &class->next;
	if (!class)
		return class_make(comm, which, log2);
	*slot = class->next;
	class->next = comm->classes;
	comm->classes = class;
	return class;
}

/* Ends a short way. Its calls are counted with those before it, as if each had been looked at. */
static void memo_end(struct memo *memo)
{
	if (memo->used) {
		memo->class->calls += memo->used;
		memo->class->unchecked += memo->used;
		report_handed(memo->class->which, OTHER_FASTER, memo->used);
		report_faster(memo->class->which, memo->class->log2, memo->used);
	}
	memo->left = memo->used = 0;
}

void hand_unlearn(void)
{
	int i;

	for (i = 0; i < WHICH_COUNT; i++)
		memo_end(&hand_memos[i]);
}

/* No call of it is handed over any more. On all its ranks, or the job fails. */
static void hand_keep(struct comm *comm)
{
	hand_unlearn();
	comm->keeps = true;
}

void hand_forget(struct comm *comm)
{
	struct class *class;

	hand_unlearn();
	while ((class = comm->classes)) {
		comm->classes = class->next;
		free(class);
	}
	board_give(comm);
}

/* ---- trials ------------------------------------------------------------- */

static int block_calls(const struct class *class, int block)
{
	return block == PROBE ? 2 : class_long(class) ? 3 : 8;
}

/* The block of this call of a trial, or BLOCKS: it is the first after the trial. */
static int block_at(const struct class *class, uint32_t call, int *within)
{
	int block;

	for (block = 0; block < BLOCKS; block++) {
		*within = call;
		if (call < (uint32_t)block_calls(class, block))
			break;
		call -= block_calls(class, block);
	}
	return block;
}

/* Of libcoll's calls in a trial: this rank's mean time in them, ns. */
static double trial_own(const struct class *class)
{
	double spent = 0;
	int i, within, counted = 0;

	for (i = 0; i < class->trial; i++) {
		if (of_mpi[block_at(class, i, &within)] || !within)
			continue;
		spent += (class->spans[i].ended - class->spans[i].began) * scale;
		counted++;
	}
	return counted ? spent / counted : 0;
}

/* Mean times of a call in each block: also without the longest of 7, which may be a page's first use, or a lost turn. */
struct trial_times {
	double all_calls[BLOCKS], without_longest[BLOCKS];
};

/*
 * So far, from the begin of a call's last rank to the end of its last: a rank that only sends may be out early, and
 * who comes early waits in either library. False: libcoll has failed.
 */
static bool trial_measured(struct comm *comm, struct class *class, struct trial_times *times)
{
	double mine[2 * CALLS + 1] = { trial_own(class) }, all[2 * CALLS + 1], sum[BLOCKS] = { 0 }, longest[BLOCKS] = { 0 };
	int i, block, within;

	*times = (struct trial_times){ 0 };
	for (i = 0; i < class->trial; i++) {
		const struct span *span = &class->spans[i];

		mine[1 + 2 * i] = span->began;
		mine[2 + 2 * i] = span->began + (span->ended - span->began) *
			(of_mpi[block_at(class, i, &within)] ? 1 : scale);
	}
	if (task_agree(comm, mine, all, 1 + 2 * class->trial, COLL_DOUBLE, COLL_MAX))
		return false;
	class->own = all[0];
	for (i = 0; i < class->trial; i++) {
		block = block_at(class, i, &within);
		if (!within)
			continue;
		sum[block] += all[2 + 2 * i] - all[1 + 2 * i];
		longest[block] = verdict_max(longest[block], all[2 + 2 * i] - all[1 + 2 * i]);
	}
	for (block = 0; block < BLOCKS; block++) {
		const int all_of = block_calls(class, block) - 1, most = all_of > 2 ? all_of - 1 : all_of;

		times->all_calls[block] = sum[block] / all_of;
		times->without_longest[block] = (sum[block] - (most < all_of ? longest[block] : 0)) / most;
	}
	return true;
}

/* The next trial is after several times as many calls as this one, if it said the same as before. */
static void trial_end(struct class *class, bool changed, uint32_t times)
{
	const uint32_t most = class_scaled(class, PAUSE_MOST);

	class->calls = 0;
	class->due = changed ? class_scaled(class, 1024) : class->pause;
	class->pause = class->due > most / times ? most : class->due * times;
	class->trial = -1;
}

/*
 * The block before this one took the MPI far longer. Again and again: the next trial is after calls
 * that take a hundred times as long as this loss, as long as libcoll does them.
 */
static bool trial_hopeless(struct comm *comm, struct class *class, int block)
{
	enum { MOST = 5, COLD_NS = 20000 };	/* a first call finds nothing in the caches */
	struct trial_times measured;
	const double *times = measured.all_calls;
	double lost;

	if (!trial_measured(comm, class, &measured)) {
		hand_keep(comm);
		return false;
	}
	if (times[block] < 4 * times[0] || times[block] < COLD_NS) {
		comm->hopeless = 0;
		return false;
	}
	report_trial(class->which, class->log2, times[0], times[block]);
	lost = times[block] * block_calls(class, block) / verdict_max(times[0], 1);
	comm->tries_from = comm->calls + verdict_min(lost * (3 << comm->hopeless), 1e9);
	if (comm->hopeless < MOST)
		comm->hopeless++;
	trial_end(class, false, 4);
	return true;
}

static void class_hand(struct class *class, bool handed)
{
	class->handed = handed;
	class->unchecked = class->samples = 0;
	class->sampled = 0;
	class->check_after = class_scaled(class, 8 * SAMPLE * (class_long(class) ? 4 : 1));
}

static void trial_conclude(struct comm *comm, struct class *class)
{
	double ours[TRIAL_BLOCKS], theirs[TRIAL_BLOCKS], ours_all[TRIAL_BLOCKS], theirs_all[TRIAL_BLOCKS];
	struct trial_times times;
	int i, n[2] = { 0, 0 };
	bool changed;

	if (!trial_measured(comm, class, &times)) {
		hand_keep(comm);
		return;
	}
	for (i = 0; i < BLOCKS; i++) {
		if (i == PROBE)
			continue;
		if (of_mpi[i]) {
			theirs_all[n[1]] = times.all_calls[i];
			theirs[n[1]++] = times.without_longest[i];
		} else {
			ours_all[n[0]] = times.all_calls[i];
			ours[n[0]++] = times.without_longest[i];
		}
	}
	report_trial(class->which, class->log2, verdict_median(ours), verdict_median(theirs));
	/* The MPI's lost turns are to be in no more than one block. */
	changed = class->handed ? verdict_faster(ours, theirs) :
		  verdict_faster(theirs, ours) && verdict_median(theirs_all) <= verdict_median(ours_all);
	class_hand(class, class->handed ^ changed);
	trial_end(class, changed, 2);
}

/* ---- handed calls ------------------------------------------------------- */

/* Whether the slowest rank still spends less time in them than in libcoll's, with all their delays. */
static void class_check(struct comm *comm, struct class *class)
{
	const uint32_t most = class_scaled(class, PAUSE_MOST / 64);
	const double mine = (double)class->sampled / class->samples;
	const uint32_t after = class->check_after;
	double slowest;

	if (task_agree(comm, &mine, &slowest, 1, COLL_DOUBLE, COLL_MAX)) {
		hand_keep(comm);
		return;
	}
	class_hand(class, slowest < 2 * class->own);
	class->check_after = after < most ? 2 * after : most;
	if (!class->handed) {
		report_trial(class->which, class->log2, class->own, slowest);
		trial_end(class, true, 2);
	}
}

/*
 * In the MPI no task progresses: those there are do until all ranks are in the call. That is part of the call's
 * time, as waiting for others is part of libcoll's. False: it has failed before the MPI began with it.
 */
static bool hand_over(struct call *call)
{
	if (call->timed)
		call->began = coll_shim_now();
	board_arrive(call->met);
	if (!task_any() || await_others(call)) {
		call->sums = float_sums(call);
		return true;
	}
	hand_keep(call->met);
	call->timed = NULL;
	return false;
}

static enum reason class_settled(struct call *call, struct class *class)
{
	class->calls++;
	if (class->handed && class->unchecked == class->check_after)
		class_check(call->met, class);
	if (!class->handed || call->met->keeps)
		return OURS;
	if (class->unchecked++ % SAMPLE == 0)
		call->timed = class;
	if (!hand_over(call))
		return OURS;
	report_faster(class->which, class->log2, 1);
	return OTHER_FASTER;
}

/* ---- calls -------------------------------------------------------------- */

/* A trial begins with this call. */
static bool trial_begins(struct comm *comm, struct class *class)
{
	if (class->calls < class->due || comm->calls < comm->tries_from)
		return false;
	if (comm->slot < 0 && !board_take(comm)) {
		hand_keep(comm);
		return false;
	}
	class->trial = 0;
	return true;
}

static enum reason trial_call(struct call *call, struct class *class)
{
	struct comm *comm = call->met;
	int within, block = block_at(class, class->trial, &within);
	bool over = block == BLOCKS;

	if (over)
		trial_conclude(comm, class);
	else if (!within && !class->handed && (block == PROBE + 1 || block == PROBE + 2))
		over = trial_hopeless(comm, class, block - 1);
	if (over || comm->keeps)
		return comm->keeps ? OURS : class_settled(call, class);
	class->trial++;
	call->timed = class;
	return of_mpi[block] && hand_over(call) ? OTHER_TRIED : OURS;
}

/* Until a sample, a check, or maybe a trial. */
static uint32_t class_plain(const struct class *class)
{
	const uint32_t to_sample = (SAMPLE - class->unchecked % SAMPLE) % SAMPLE;
	const uint32_t to_check = class->check_after - class->unchecked;
	const uint32_t to_trial = class->calls < class->due ? class->due - class->calls : 0;
	const uint32_t least = to_sample < to_check ? to_sample : to_check;

	return least < to_trial ? least : to_trial;
}

/* Counts in arrays are looked at each time. */
static void hand_learn(const struct call *call, struct class *class)
{
	if (call->in_counts || call->out_counts || shim.settings.trace)
		return;
	hand_memos[call->which] = (struct memo){
		.left = class_plain(class),
		.root = call->root,
		.in_place = call->in == MPI_IN_PLACE,
		.out_place = call->out == MPI_IN_PLACE,
		.handle = call->comm,
		.op = call->op,
		.in_count = call->in_count,
		.out_count = call->out_count,
		.in_type = call->in_type,
		.out_type = call->out_type,
		.comm = call->met,
		.class = class,
		.word = board_word(call->met),
		.sums = call->sums,
		.coll_type = call->coll_type,
	};
}

enum reason hand_decide(struct call *call)
{
	enum reason reason;
	struct class *class;

	if (!hand_fits(call))
		return OURS;
	memo_end(&hand_memos[call->which]);
	call->met->calls++;
	class = class_of(call->met, call->which, report_log2(call_bytes(call)));
	if (class->trial >= 0 || trial_begins(call->met, class))
		return trial_call(call, class);
	reason = class_settled(call, class);
	if (reason == OTHER_FASTER)
		hand_learn(call, class);
	return reason;
}

void hand_done(struct call *call)
{
	const struct span span = { call->began, coll_shim_now() };
	struct class *class = call->timed;

	if (class->trial < 0) {
		class->sampled += span.ended - span.began;
		class->samples++;
	} else {
		class->spans[class->trial - 1] = span;
	}
}

/* ---- start and end ------------------------------------------------------ */

/* Threads may have tasks that this one knows nothing of, and an MPI that does not yield is slow here. */
static uint32_t may_here(void)
{
	uint32_t here = 0;
	int i;

	if (shim.threads || shim.yields)
		return 0;
	for (i = 0; i < WHICH_COUNT; i++)
		if (i != WHICH_Gatherv && i != WHICH_Scatterv && i != WHICH_Alltoallv &&
		    i != WHICH_Alltoallw && coll_shim_may_hand(shim.context, which_names[i]))
			here |= 1u << i;
	return here;
}

void hand_start(void)
{
	uint32_t here;

	may = 0;
	await_start();
	if (shim.settings.hand == HAND_OFF || shim.settings.on != ~0u || shim.ranks < 2)
		return;
	here = may_here();
	if (real.Allreduce(&here, &may, 1, MPI_UINT32_T, MPI_BAND, shim.node))
		may = 0;
	if (!board_open(may))
		may = 0;
}

void hand_end(void)
{
	hand_unlearn();
	may = 0;
	board_close();
}
