/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Where the data of a call lies: offsets and sizes of blocks, the same for the plain and the v
 * forms. All in bytes.
 */
#ifndef COLL_BLOCKS_H
#define COLL_BLOCKS_H

#include "algo.h"
#include "ranks.h"

/* My input when it is one vector: IN, or OUT when in place. */
static inline u64 call_input(const struct coll_call *call)
{
	return COLL_ADDRESS(call->in_place ? COLL_OUT : COLL_IN, 0);
}

/* Bytes of `count` elements. */
static inline u64 call_bytes(const struct coll_call *call)
{
	return call->count * call->element;
}

/* Bytes of the block that belongs to `rank` (gather, scatter, allgather, reduce_scatter). */
static inline u64 block_bytes(const struct coll_call *call, u32 rank)
{
	return (call->counts ? call->counts[rank] : call->count) * call->element;
}

/* Offset of that block in the buffer that has all of them. */
static inline u64 block_offset(const struct coll_call *call, u32 rank)
{
	u64 offset = 0;
	u32 i;

	if (call->displs)
		return call->displs[rank] * call->element;
	if (!call->counts)
		return rank * call->count * call->element;
	for (i = 0; i < rank; i++)	/* reduce_scatter: blocks follow each other */
		offset += call->counts[i];
	return offset * call->element;
}

/* Bytes of `count` blocks from that of `first` on, going round after the last rank. */
static inline u64 blocks_bytes(const struct coll_call *call, u32 first, u32 count)
{
	u64 elements = 0;
	u32 i;

	if (!call->counts)
		return count * call_bytes(call);
	for (i = 0; i < count; i++)
		elements += call->counts[((u64)first + i) % call->ranks];
	return elements * call->element;
}

/* My own block where the call brings it: IN, or its place in OUT. */
static inline u64 call_block(const struct coll_call *call)
{
	return call->in_place ? COLL_ADDRESS(COLL_OUT, block_offset(call, call->rank)) :
				COLL_ADDRESS(COLL_IN, 0);
}

struct coll_block {
	u64 place, bytes;
};

/* alltoall(v): the block that comes from `rank`, and where it belongs. */
static inline struct coll_block block_from(const struct coll_call *call, u32 rank)
{
	const u64 n = call_bytes(call), element = call->element;

	if (!call->recv_counts)
		return (struct coll_block){ COLL_ADDRESS(COLL_OUT, rank * n), n };
	return (struct coll_block){ COLL_ADDRESS(COLL_OUT, call->recv_displs[rank] * element),
				    call->recv_counts[rank] * element };
}

/* alltoall(v): the block to `rank`, and its address. */
static inline struct coll_block block_to(const struct coll_call *call, u32 rank)
{
	const u64 n = call_bytes(call), element = call->element;

	if (call->in_place)
		return block_from(call, rank);
	if (!call->send_counts)
		return (struct coll_block){ COLL_ADDRESS(COLL_IN, rank * n), n };
	return (struct coll_block){ COLL_ADDRESS(COLL_IN, call->send_displs[rank] * element),
				    call->send_counts[rank] * element };
}

/* alltoall(v): copies my own block to OUT. */
static inline void emit_copy_own(struct coll_build *b, const struct coll_call *call)
{
	if (!call->in_place && block_to(call, call->rank).bytes)
		coll_emit_copy(b, block_from(call, call->rank).place,
			       block_to(call, call->rank).place, block_to(call, call->rank).bytes);
}

/* allgather(v): my block to its place in OUT. */
static inline void emit_copy_block(struct coll_build *b, const struct coll_call *call)
{
	const u64 bytes = block_bytes(call, call->rank);

	if (!call->in_place && bytes)
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, block_offset(call, call->rank)), call_block(call), bytes);
}

/*
 * alltoall(v): bytes of a block, for predicting costs. Of alltoallv the ranks
 * know no size in common but the bound.
 */
static inline u64 block_usual_bytes(const struct coll_call *call, const struct coll_tuning *tuning)
{
	if (call->collective == COLL_ALLTOALL)
		return call_bytes(call);
	return tuning->bound == COLL_UNSET ? 0 : tuning->bound * call->element;
}

/*
 * A vector of `count` elements cut into `parts` nearly equal runs, the longer
 * ones first: where part i begins, in bytes; part_offset(.., parts) is the end.
 */
static inline u64 part_offset(const struct coll_call *call, u32 parts, u32 i)
{
	u64 quotient = call->count / parts, rest = call->count % parts;

	return (i * quotient + (i < rest ? i : rest)) * call->element;
}

static inline u64 part_bytes(const struct coll_call *call, u32 parts, u32 i)
{
	return part_offset(call, parts, i + 1) - part_offset(call, parts, i);
}

enum {
	/* What a link carries in the time of one latency: 20 us at 2 GB/s. */
	LATENCY_BYTES = 40000,
	SEGMENTS_MAX = 1 << 16,
};

static inline u32 square_root(u64 square)
{
	u64 root = 0, bit;

	for (bit = 1ull << 31; bit; bit /= 2)
		if ((root + bit) * (root + bit) <= square)
			root += bit;
	return root;
}

/*
 * Elements that segments are of: of a reduce_scatter all blocks together, since each rank has a count of its own
 * and all must cut alike. O(ranks) there, where counts differ.
 */
static inline u64 cut_count(const struct coll_call *call)
{
	const bool blocks = call->collective == COLL_REDUCE_SCATTER ||
			    call->collective == COLL_REDUCE_SCATTER_BLOCK;

	return blocks ? blocks_bytes(call, 0, call->ranks) / call->element : call->count;
}

/*
 * The number of parts of a pipeline: by `segment`, else sqrt(hops n beta / alpha), which
 * minimises (parts + hops) (alpha + n/parts beta). No part is empty unless the vector is.
 */
static inline u32 pipeline_parts(const struct coll_call *call, const struct coll_tuning *tuning,
				 u32 hops)
{
	const u64 count = cut_count(call), n = count * call->element;
	u64 parts, each;

	if (tuning->segment != COLL_UNSET) {
		each = tuning->segment / call->element;
		parts = count / (each ? each : 1) + (each && count % each);
	} else {
		parts = square_root(n >> 32 ? n / LATENCY_BYTES * hops : n * hops / LATENCY_BYTES);
		if (parts > count)
			parts = count;
	}
	if (parts > SEGMENTS_MAX)	/* pipeline_refuses(), or past all use */
		parts = SEGMENTS_MAX;
	return parts ? parts : 1;
}

static inline const char *pipeline_refuses(const struct coll_call *call,
					   const struct coll_tuning *tuning)
{
	if (tuning->segment == COLL_UNSET)
		return NULL;
	if (!tuning->segment)
		return "`segment` must be at least 1 byte";
	if (cut_count(call) * call->element / tuning->segment >= SEGMENTS_MAX)
		return "`segment` cuts the data into more than 65536 messages";
	return NULL;
}

/* ---- costs -------------------------------------------------------------- */

/*
 * The time of a schedule from its longest way and a rank's mean share of the work, both in
 * seconds. Where ranks share cores, these must do the work of all, and while the longest
 * way is gone some of them may have nothing to do: Graham's bound of list scheduling
 * (SIAM J. Appl. Math. 17, 1969), work / cores + (1 - 1 / cores) way.
 */
static inline double crowded_cost(const struct coll_call *call, const struct coll_machine *m,
				  double path, double share)
{
	/* Few ranks have no more than one core less than these. */
	const double ranks = m->alike > 1 ? m->alike * call->ranks : call->ranks;
	const double crowding = m->crowding < ranks ? m->crowding : ranks;

	if (m->crowding <= 1)
		return path;
	return crowding * share + (1 - crowding / ranks) * path;
}

/* The cost if all ranks do the same work all along the path. */
static inline double symmetric_cost(const struct coll_call *call, const struct coll_machine *m,
				    double path)
{
	return crowded_cost(call, m, path, path);
}

/* A rank's mean work if each rank but one receives (or sends) once, for `once` seconds. */
static inline double tree_share(const struct coll_call *call, double once)
{
	return (call->ranks - 1) * once / call->ranks;
}

/*
 * What a rank does for a message that it receives and one that it sends. Inside a node a message's
 * whole time is work, of its sender and its receiver.
 */
static inline double message_work(const struct coll_machine *m)
{
	return m->copied ? m->alpha : 2 * m->overhead;
}

/* What cores do for a byte over a wire that takes `beta` for it: as measured, or usual. */
static inline double byte_work(const struct coll_machine *m, double beta)
{
	if (m->byte_work > 0)
		return m->byte_work;
	return beta < COLL_USUAL_BETA ? beta : COLL_USUAL_BETA;
}

/* What cores do for a message of many that come at once: inside a node, one wake-up, half of the work, serves two. */
static inline double at_once_work(const struct coll_machine *m)
{
	return m->copied ? m->alpha * 3 / 4 : m->alpha;
}

/*
 * A pipeline of `parts` messages, together n bytes, over `hops` links, whose receivers do `work`
 * seconds a byte. The first one has the latency of all links; each further one follows when a rank has
 * received the one before, and sent it on.
 */
static inline double pipeline_cost(const struct coll_call *call, const struct coll_machine *m,
				   double hops, double parts, double n, double work)
{
	const double bytes = n / parts * (m->beta + work);
	const double slowest = m->byte_gap > m->beta ? m->byte_gap : m->beta;
	const double gap = message_work(m) + n / parts * (slowest + work);

	return crowded_cost(call, m, hops * (m->alpha + bytes) + (parts - 1) * gap,
			    tree_share(call, parts * (m->alpha + bytes)));
}

/*
 * Segments that take the same way independently of each other: `messages` of each in a row, `bytes`
 * seconds of bytes and `work` of reductions for all of them. While one segment waits for its latency, others
 * use the link, and the rank reduces; not where its core is what carries the messages. No segment's own way
 * becomes shorter by that.
 */
static inline double segmented_cost(const struct coll_machine *m, double segments, double messages,
				    double bytes, double work)
{
	const double latency = messages * m->alpha, beside = m->copied ? 0 : latency + work;
	const double more = (segments - 1) * message_work(m);
	const double together = bytes + latency + work - beside * (1 - 1 / segments) + messages * more;
	const double alone = latency + (bytes + work) / segments + more;

	return together > alone ? together : alone;
}

/*
 * A binomial tree of messages of n bytes, for which their receiver works `work` seconds a byte. The root
 * of p ranks sends to that of the p - 2^k above 2^k first, then to those of its 2^k, and each the same.
 */
static inline double binomial_cost(const struct coll_machine *m, u32 ranks, double n, double work)
{
	const double way = m->alpha + n * (m->beta + work), gap = m->overhead + n * (m->byte_gap + work);
	double seconds = 0, above = 0, below;
	u32 k;

	for (; ranks > 1; ranks -= 1u << k) {
		k = log2_floor(ranks);
		if (ranks == 1u << k)
			k--;
		below = above + gap + k * way;
		above += way;
		seconds = below > seconds ? below : seconds;
	}
	return above > seconds ? above : seconds;
}

/* From one message of n bytes to the next: a NIC sends one while the core makes the next. */
static inline double fan_gap(const struct coll_machine *m, double n)
{
	const double bytes = n * m->byte_gap;

	return m->copied ? m->overhead + bytes : bytes > m->overhead ? bytes : m->overhead;
}

/* Messages of n bytes in flight together, from or to one rank. */
static inline double fan_cost(const struct coll_machine *m, u32 messages, double n)
{
	return messages ? m->alpha + n * m->beta + (messages - 1) * fan_gap(m, n) : 0;
}

/* Whether ranks of a node read messages of n bytes to several of them in one copy. */
static inline bool is_published(const struct coll_machine *m, u32 ranks, double n)
{
	return m->copied && ranks > 2 && n >= COLL_PUBLISHED_MIN && n <= m->published;
}

/* Whether a rank of a node writes n bytes once for all others, which read them there. */
static inline bool is_posted(const struct coll_machine *m, u32 ranks, double n)
{
	return m->copied && m->published && ranks > 2 && ranks <= COLL_POSTED_RANKS && n <= COLL_POSTED_MAX;
}

/* The same n bytes to all other ranks at once: the time, and a rank's mean share of the work. */
struct fan_same {
	double path, share;
};

/* Of what is posted a reader has a look at a line of the sender's: it is a core's work for so long. */
static inline double posted_work(const struct coll_machine *m)
{
	return m->alpha / 4;
}

/*
 * A message is two copies; published, one is the sender's, for all, and the other each reader's, at once. Posted, it is
 * written once.
 */
static inline struct fan_same fan_same_cost(const struct coll_call *call, const struct coll_machine *m, double n)
{
	const double half = n * m->beta / 2;

	if (is_posted(m, call->ranks, n))
		return (struct fan_same){ m->alpha + n * m->beta,
					  tree_share(call, posted_work(m) + half) + half / call->ranks };
	if (is_published(m, call->ranks, n))
		return (struct fan_same){ m->alpha + n * m->beta + (call->ranks - 2) * m->overhead,
					  tree_share(call, m->alpha + half) + half / call->ranks };
	return (struct fan_same){ fan_cost(m, call->ranks - 1, n), tree_share(call, m->alpha + n * m->beta) };
}

/* ... to one that adds them up, each while the next one comes. */
static inline double fan_sum_cost(const struct coll_machine *m, u32 messages, double n)
{
	const double gap = fan_gap(m, n), sum = n * m->gamma;
	const double core = m->copied ? gap + sum : m->overhead + sum;

	return messages ? m->alpha + n * m->beta + (messages - 1) * (core > gap ? core : gap) + sum : 0;
}

#endif
