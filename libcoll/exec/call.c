// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "planned.h"

/* ---- a call's arrays -------------------------------------------------------- */

enum { ARRAYS = 6 };

/* All counts and displacements of a call, in a fixed order. */
static const u64 **array_of(struct coll_call *call, uint32_t i)
{
	const u64 **const array[ARRAYS] = {
		&call->counts,	    &call->displs,	&call->send_counts,
		&call->send_displs, &call->recv_counts, &call->recv_displs,
	};

	return array[i];
}

static const u64 *array_in(const struct coll_call *call, uint32_t i)
{
	return *array_of((struct coll_call *)call, i);
}

/* Without a branch for each: most calls have none. */
bool coll_call_has_arrays(const struct coll_call *call)
{
	return (uintptr_t)call->counts | (uintptr_t)call->displs | (uintptr_t)call->send_counts |
	       (uintptr_t)call->send_displs | (uintptr_t)call->recv_counts |
	       (uintptr_t)call->recv_displs;
}

/* ---- hashes ------------------------------------------------------------- */

uint64_t coll_call_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static uint64_t mix_array(uint64_t hash, const u64 *values, uint32_t count)
{
	uint32_t i;

	for (i = 0; values && i < count; i++)
		hash = coll_call_mix(hash, values[i]);
	return hash;
}

uint64_t coll_call_key(const struct coll_call *call, uint32_t user_op)
{
	uint64_t hash = coll_call_mix(user_op, call->collective);
	uint32_t i;

	hash = coll_call_mix(hash, (uint64_t)call->root << 32 | call->type);
	hash = coll_call_mix(hash,
			   (uint64_t)call->element << 16 | call->reduction << 1 | call->in_place);
	hash = coll_call_mix(hash, call->count);
	for (i = 0; coll_call_has_arrays(call) && i < ARRAYS; i++)
		hash = mix_array(hash, array_in(call, i), call->ranks);
	return hash;
}

static bool same_count_everywhere(enum coll_collective collective)
{
	return collective != COLL_GATHERV && collective != COLL_SCATTERV &&
	       collective != COLL_ALLGATHERV && collective != COLL_ALLTOALLV &&
	       collective != COLL_REDUCE_SCATTER;
}

uint32_t coll_call_hash(const struct coll_planned *planned)
{
	const struct coll_call *call = &planned->call;
	const struct coll_tuning *tuning = &planned->tuning;
	const char *name;
	uint32_t i;
	uint64_t hash = coll_call_mix(call->ranks, call->collective);

	hash = coll_call_mix(hash, (uint64_t)call->root << 32 | call->type);
	hash = coll_call_mix(hash, (uint64_t)call->element << 8 | call->reduction);
	if (same_count_everywhere(call->collective))
		hash = coll_call_mix(hash, call->count);
	if (call->collective == COLL_ALLGATHERV || call->collective == COLL_REDUCE_SCATTER)
		hash = mix_array(hash, call->counts, call->ranks);
	for (name = planned->algo->name; *name; name++)
		hash = coll_call_mix(hash, *name);
	hash = coll_call_mix(hash, tuning->redundancy);
	hash = coll_call_mix(hash, tuning->segment);
	hash = coll_call_mix(hash, tuning->bound);
	hash = coll_call_mix(hash, tuning->lanes);
	hash = coll_call_mix(hash, tuning->relays);
	hash = coll_call_mix(hash, tuning->radix);
	hash = coll_call_mix(hash, tuning->across);
	hash = coll_call_mix(hash, tuning->replicas);
	hash = coll_call_mix(hash, tuning->ports);
	hash = coll_call_mix(hash, tuning->wavelengths);
	hash = coll_call_mix(hash, tuning->ahead << 1 ^ tuning->simplex);
	for (i = 0; i < COLL_LATE_MAX && tuning->late[i] != COLL_NONE; i++)
		hash = coll_call_mix(hash, tuning->late[i]);
	for (i = 0; planned->ports && i < call->ranks; i++)
		hash = coll_call_mix(hash, planned->ports[i]);
	return hash ^ hash >> 32;
}

/* ---- copies of counts --------------------------------------------------- */

static bool same_array(const u64 *a, const u64 *b, uint32_t count)
{
	return !a == !b && (!a || !memcmp(a, b, count * sizeof(*a)));
}

static bool same_arrays(const struct coll_call *a, const struct coll_call *b)
{
	bool same = coll_call_has_arrays(a) == coll_call_has_arrays(b);
	uint32_t i;

	for (i = 0; same && coll_call_has_arrays(a) && i < ARRAYS; i++)
		same = same_array(array_in(a, i), array_in(b, i), a->ranks);
	return same;
}

int coll_call_keep_arrays(struct coll_call *call, u64 **memory)
{
	u64 *copy = malloc(ARRAYS * (size_t)call->ranks * sizeof(*copy));
	uint32_t i;

	if (!copy)
		return -ENOMEM;
	*memory = copy;
	for (i = 0; i < ARRAYS; i++, copy += call->ranks) {
		const u64 **array = array_of(call, i);

		if (*array)
			*array = memcpy(copy, *array, call->ranks * sizeof(*copy));
	}
	return 0;
}

bool coll_call_is_same(const struct coll_call *a, const struct coll_call *b)
{
	return a->count == b->count && a->collective == b->collective && a->root == b->root &&
	       a->type == b->type && a->element == b->element &&
	       a->reduction == b->reduction && a->in_place == b->in_place &&
	       a->commutative == b->commutative && same_arrays(a, b);
}
