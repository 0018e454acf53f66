// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Inputs and expected results of each rank, from the definition of the collectives (the table in
 * algo.h), without using anything that algorithms use. Input element e of rank r is the symbol
 * leaf(r, e).
 */
#include <string.h>

#include "verify.h"

/* Sizes of blocks: some zero, none above the case's count. */
static u64 block_count(const struct verify_case *c, u32 index, u64 *random)
{
	switch (c->shape) {
	case SHAPE_UNEQUAL:
		return dice_below(random, 4) ? dice_below(random, c->count + 1) : 0;
	case SHAPE_ALONE:
		return index == c->ranks / 2 ? c->count : 0;
	default:
		return c->count;
	}
}

/* Addresses of blocks, without overlap; unequal blocks are in random order with gaps. */
static void block_displs(struct world *w, const u64 *counts, u64 *displs, u64 *random)
{
	const bool shuffled = w->vcase->shape == SHAPE_UNEQUAL;
	u32 *order = arena_get(&w->arena, w->ranks, sizeof(*order));
	u64 next = 0;
	u32 i;

	for (i = 0; i < w->ranks; i++) {
		u32 j = shuffled ? dice_below(random, i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < w->ranks; i++) {
		if (shuffled)
			next += dice_below(random, 3);
		displs[order[i]] = next;
		next += counts[order[i]];
	}
}

static void layout_matrix(struct world *w, u64 *random)
{
	const u32 p = w->ranks;
	struct verify_blocks *b = &w->blocks;
	u32 i, j;

	b->send_counts = arena_get(&w->arena, (size_t)p * p, sizeof(u64));
	b->send_displs = arena_get(&w->arena, (size_t)p * p, sizeof(u64));
	b->recv_counts = arena_get(&w->arena, (size_t)p * p, sizeof(u64));
	b->recv_displs = arena_get(&w->arena, (size_t)p * p, sizeof(u64));
	for (i = 0; i < p; i++)
		for (j = 0; j < p; j++)
			b->send_counts[i * p + j] = block_count(w->vcase, j, random);
	/* In place, the input has the capacity of the output. */
	for (i = 0; i < p && w->vcase->in_place; i++)
		for (j = 0; j < i; j++)
			b->send_counts[i * p + j] = b->send_counts[j * p + i];
	for (i = 0; i < p; i++)
		for (j = 0; j < p; j++)
			b->recv_counts[i * p + j] = b->send_counts[j * p + i];
	for (i = 0; i < p; i++) {
		block_displs(w, b->send_counts + i * p, b->send_displs + i * p, random);
		block_displs(w, b->recv_counts + i * p, b->recv_displs + i * p, random);
	}
	if (w->vcase->in_place)
		b->send_displs = b->recv_displs;
}

/* k of each rank, if there are circuits. */
static void layout_ports(struct world *w)
{
	const struct verify_case *c = w->vcase;
	u32 i;

	w->ports = NULL;
	if (c->tuning.ports == COLL_UNSET)
		return;
	w->ports = arena_get(&w->arena, w->ranks, sizeof(u32));
	for (i = 0; i < w->ranks; i++)
		w->ports[i] = c->tuning.ahead == COLL_AHEAD_NOT ? 1 :
			      c->ports_differ		       ? 1 + i % c->tuning.ports :
								 c->tuning.ports;
}

/* Contiguous clusters, or alternating ranks until a cluster is full. */
static void layout_clusters(struct world *w)
{
	const struct verify_case *c = w->vcase;
	u32 left[CLUSTERS_MAX], rank = 0, k = 0;

	w->cluster = NULL;
	w->clusters = 0;
	memcpy(left, c->cluster, sizeof(left));
	while (w->clusters < CLUSTERS_MAX && left[w->clusters])
		w->clusters++;
	if (!w->clusters)
		return;
	w->cluster = arena_get(&w->arena, w->ranks, sizeof(*w->cluster));
	while (rank < w->ranks) {
		while (!left[k])
			k = (k + 1) % w->clusters;
		w->cluster[rank++] = k;
		left[k]--;
		if (c->dealt)
			k = (k + 1) % w->clusters;
	}
}

void layout_blocks(struct world *w)
{
	u64 random = w->random;
	u32 i;

	layout_ports(w);
	layout_clusters(w);
	layout_levels(w);
	if (w->vcase->algo->collective == COLL_ALLTOALLV) {
		layout_matrix(w, &random);
		return;
	}
	w->blocks.counts = arena_get(&w->arena, w->ranks, sizeof(u64));
	w->blocks.displs = arena_get(&w->arena, w->ranks, sizeof(u64));
	for (i = 0; i < w->ranks; i++)
		w->blocks.counts[i] = block_count(w->vcase, i, &random);
	if (w->vcase->algo->collective == COLL_REDUCE_SCATTER)
		for (i = 0; i < w->ranks; i++)
			w->blocks.displs[i] = i ? w->blocks.displs[i - 1] +
						  w->blocks.counts[i - 1] : 0;
	else
		block_displs(w, w->blocks.counts, w->blocks.displs, &random);
}

static void call_v(const struct world *w, u32 rank, struct coll_call *call)
{
	const struct verify_blocks *b = &w->blocks;
	const size_t row = (size_t)rank * w->ranks;

	switch (call->collective) {
	case COLL_GATHERV:
	case COLL_SCATTERV:
		call->count = b->counts[rank];
		if (w->vcase->root_counts && rank != call->root)
			return;
		call->counts = b->counts;
		call->displs = b->displs;
		return;
	case COLL_ALLGATHERV:
		call->displs = b->displs;
		/* fall through */
	case COLL_REDUCE_SCATTER:
		call->counts = b->counts;
		call->count = b->counts[rank];
		return;
	case COLL_ALLTOALLV:
		call->count = 0;
		call->send_counts = b->send_counts + row;
		call->send_displs = b->send_displs + row;
		call->recv_counts = b->recv_counts + row;
		call->recv_displs = b->recv_displs + row;
		return;
	default:
		return;
	}
}

static bool in_place_on_root_only(enum coll_collective collective)
{
	return collective == COLL_GATHER || collective == COLL_GATHERV ||
	       collective == COLL_SCATTER || collective == COLL_SCATTERV ||
	       collective == COLL_REDUCE;
}

void layout_call(const struct world *w, u32 rank, struct coll_call *call)
{
	const struct verify_case *c = w->vcase;

	*call = (struct coll_call){
		.collective = c->algo->collective,
		.rank = rank,
		.ranks = w->ranks,
		.root = c->root,
		.type = c->commutative ? COLL_INT64 : COLL_OPAQUE_TYPE,
		.reduction = c->commutative ? COLL_SUM : COLL_USER_REDUCTION,
		.element = ELEMENT,
		.commutative = c->commutative,
		.in_place = c->in_place &&
			    (rank == c->root || !in_place_on_root_only(c->algo->collective)),
		.count = c->count,
		.cluster = w->cluster,
		.clusters = w->clusters,
		.level = w->levels.count ? w->levels.level : NULL,
		.levels = w->levels.count,
		.ports = w->vcase->ports_differ ? w->ports : NULL,
	};
	call_v(w, rank, call);
}

/* ---- images ------------------------------------------------------------- */

static u64 layout_extent(const u64 *counts, const u64 *displs, u32 ranks)
{
	u64 end = 0;
	u32 i;

	for (i = 0; i < ranks; i++)
		if (counts[i] && displs[i] + counts[i] > end)
			end = displs[i] + counts[i];
	return end;
}

/* Buffers of these sizes: IN all inputs, OUT untouched. */
static void image_new(struct world *w, u32 rank, u64 in, u64 out)
{
	struct verify_want *want = &w->rank[rank].want;
	u64 i;

	want->in_elements = in;
	want->out_elements = out;
	want->in = arena_get(&w->arena, in, sizeof(u32));
	want->out = arena_get(&w->arena, out, sizeof(u32));
	want->want = arena_get(&w->arena, out, sizeof(u32));
	for (i = 0; i < in; i++)
		want->in[i] = symbol_leaf(&w->symbols, rank, i);
	for (i = 0; i < out; i++)
		want->out[i] = want->want[i] = SYMBOL_UNWRITTEN;
}

/* `count` elements at `at` are leaf(rank, first), leaf(rank, first + 1), ... */
static void image_leaves(struct world *w, u32 *image, u64 at, u64 count, u32 rank, u64 first)
{
	u64 i;

	for (i = 0; i < count; i++)
		image[at + i] = symbol_leaf(&w->symbols, rank, first + i);
}

/* Before an in-place call the first elements of OUT are the rank's input. */
static void image_in_place(struct world *w, u32 rank, u64 count)
{
	struct verify_want *want = &w->rank[rank].want;

	image_leaves(w, want->out, 0, count, rank, 0);
	memcpy(want->want, want->out, count * sizeof(u32));
}

static void image_reduction(struct world *w, u32 rank, u64 count, u64 first, u32 ranks)
{
	struct verify_want *want = &w->rank[rank].want;
	u64 i;

	want->first = first;
	want->low = 0;
	want->high = ranks;
	for (i = 0; i < count; i++)
		want->want[i] = ranks ? WANT_REDUCTION : WANT_ANYTHING;
}

static void image_bcast(struct world *w, u32 rank)
{
	const u64 n = w->vcase->count;
	struct verify_want *want = &w->rank[rank].want;

	image_new(w, rank, 0, n);
	if (rank == w->vcase->root)
		image_leaves(w, want->out, 0, n, rank, 0);
	image_leaves(w, want->want, 0, n, w->vcase->root, 0);
}

/* gather(v) at the root, allgather(v) everywhere; `all`: this rank receives the blocks. */
static void image_gather(struct world *w, u32 rank, bool all, bool in_place)
{
	const struct verify_blocks *b = &w->blocks;
	struct verify_want *want = &w->rank[rank].want;
	u32 i;

	image_new(w, rank, in_place ? 0 : b->counts[rank],
		  all ? layout_extent(b->counts, b->displs, w->ranks) : 0);
	if (!all)
		return;
	if (in_place)
		image_leaves(w, want->out, b->displs[rank], b->counts[rank], rank, 0);
	for (i = 0; i < w->ranks; i++)
		image_leaves(w, want->want, b->displs[i], b->counts[i], i, 0);
}

static void image_scatter(struct world *w, u32 rank, bool in_place)
{
	const struct verify_blocks *b = &w->blocks;
	const u32 root = w->vcase->root;
	const u64 out = in_place ? 0 : b->counts[rank];

	image_new(w, rank, rank == root ? layout_extent(b->counts, b->displs, w->ranks) : 0, out);
	image_leaves(w, w->rank[rank].want.want, 0, out, root, b->displs[rank]);
}

static void image_alltoall(struct world *w, u32 rank, bool in_place)
{
	const u32 p = w->ranks;
	const u64 n = w->vcase->count;
	struct verify_want *want = &w->rank[rank].want;
	u32 i;

	image_new(w, rank, in_place ? 0 : n * p, n * p);
	if (in_place)
		image_in_place(w, rank, n * p);
	for (i = 0; i < p; i++)
		image_leaves(w, want->want, i * n, n, i, rank * n);
}

static void image_alltoallv(struct world *w, u32 rank, bool in_place)
{
	const struct verify_blocks *b = &w->blocks;
	const size_t p = w->ranks;
	const u64 *counts = b->recv_counts + rank * p, *displs = b->recv_displs + rank * p;
	const u64 out = layout_extent(counts, displs, p);
	struct verify_want *want = &w->rank[rank].want;
	u32 i;

	image_new(w, rank, in_place ? 0 :
		  layout_extent(b->send_counts + rank * p, b->send_displs + rank * p, p), out);
	if (in_place)
		image_in_place(w, rank, out);
	for (i = 0; i < p; i++)
		image_leaves(w, want->want, displs[i], counts[i], i, b->send_displs[i * p + rank]);
}

/* Input: one vector. Output: `out` elements of its reduction over the first `ranks` ranks. */
static void image_reduce(struct world *w, u32 rank, u64 out, u32 ranks, bool in_place)
{
	const u64 n = w->vcase->count;

	image_new(w, rank, in_place ? 0 : n, out);
	if (in_place)
		image_in_place(w, rank, out);
	image_reduction(w, rank, out, 0, ranks);
}

static void image_reduce_scatter(struct world *w, u32 rank, bool in_place)
{
	const struct verify_blocks *b = &w->blocks;
	const u64 all = layout_extent(b->counts, b->displs, w->ranks), mine = b->counts[rank];
	struct verify_want *want = &w->rank[rank].want;
	u64 i;

	image_new(w, rank, in_place ? 0 : all, in_place ? all : mine);
	if (in_place) {
		image_in_place(w, rank, all);
		for (i = mine; i < all; i++)
			want->want[i] = WANT_ANYTHING;
	}
	image_reduction(w, rank, mine, b->displs[rank], w->ranks);
}

static void layout_image(struct world *w, u32 rank)
{
	const struct verify_case *c = w->vcase;
	const bool root = rank == c->root;

	switch (c->algo->collective) {
	case COLL_BARRIER:
		image_new(w, rank, 0, 0);
		break;
	case COLL_BCAST:
		image_bcast(w, rank);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
		image_gather(w, rank, root, root && c->in_place);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		image_scatter(w, rank, root && c->in_place);
		break;
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		image_gather(w, rank, true, c->in_place);
		break;
	case COLL_ALLTOALL:
		image_alltoall(w, rank, c->in_place);
		break;
	case COLL_ALLTOALLV:
		image_alltoallv(w, rank, c->in_place);
		break;
	case COLL_REDUCE:
		image_reduce(w, rank, root ? c->count : 0, w->ranks, root && c->in_place);
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		image_reduce_scatter(w, rank, c->in_place);
		break;
	case COLL_SCAN:
		image_reduce(w, rank, c->count, rank + 1, c->in_place);
		break;
	case COLL_EXSCAN:
		image_reduce(w, rank, rank || c->in_place ? c->count : 0, rank, c->in_place);
		break;
	default:
		image_reduce(w, rank, c->count, w->ranks, c->in_place);
		break;
	}
}

void layout_images(struct world *w)
{
	u32 i;

	for (i = 0; i < w->ranks; i++)
		layout_image(w, i);
}
