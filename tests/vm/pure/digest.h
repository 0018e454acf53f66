/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What core/ computes, boiled down to numbers: compiled into a module and into a program,
 * which compares. What is right, its unit tests say in user space. Includes nothing:
 * core/noise/noise.h and core/reduce.h come before it.
 */
#ifndef COLL_TESTS_PURE_H
#define COLL_TESTS_PURE_H

enum pure_digest {
	PURE_PLANS,		/* events of every kind of plan */
	PURE_SEEKS,		/* entered in their middle */
	PURE_REFUSALS,		/* models of any bits */
	PURE_INTEGERS,		/* reductions */
	PURE_FLOATS,		/* reductions: in the kernel, with the FPU taken */
	PURE_DIGESTS,
};

enum { PURE_EVENTS = 2000, PURE_MODELS = 20000, PURE_BYTES = 960 };

static u64 pure_random(u64 *state)
{
	u64 word = *state += 0x9e3779b97f4a7c15ull;

	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
	word = (word ^ word >> 27) * 0x94d049bb133111ebull;
	return word ^ word >> 31;
}

static u64 pure_mix(u64 digest, const void *data, u64 bytes)
{
	const u8 *at = data;

	while (bytes--)
		digest = (digest ^ *at++) * 0x100000001b3ull;
	return digest;
}

static u64 pure_events(u64 digest, const struct coll_noise_plan *plan, bool seek)
{
	struct coll_noise_stream stream = coll_noise_stream(plan, 3);
	struct coll_noise_span span;
	int i;

	for (i = 0; i < PURE_EVENTS; i++) {
		if (seek)
			coll_noise_seek(plan, &stream, (u64)(PURE_EVENTS - i) * 77777777);
		span = coll_noise_next(plan, &stream);
		digest = pure_mix(digest, &span, sizeof(span));
	}
	return digest;
}

static u64 pure_plans(bool seek)
{
	static const struct coll_noise_span table[] = { { 0, 5000 }, { 30000, 7 }, { 30001, 900 } };
	static const struct coll_noise_span lengths[] = { { 0, 5000 }, { 0, 7 }, { 0, 900 } };
	struct coll_noise_model model;
	struct coll_noise_plan plan;
	const char *wrong;
	u64 digest = 0;
	u32 kind;

	for (kind = 0; kind < COLL_NOISE_ARRIVALS * COLL_NOISE_PHASES * COLL_NOISE_LENGTHS; kind++) {
		model = (struct coll_noise_model){ .period = 1000000, .seed = kind };
		model.arrival = kind % COLL_NOISE_ARRIVALS;
		model.phase = kind / COLL_NOISE_ARRIVALS % COLL_NOISE_PHASES;
		model.length = kind / COLL_NOISE_ARRIVALS / COLL_NOISE_PHASES;
		model.streams = model.phase == COLL_NOISE_STAGGERED ? 8 : 0;
		model.shape = model.length == COLL_NOISE_PARETO ? 1500 : 0;
		plan = (struct coll_noise_plan){ .model = &model };
		if (model.arrival == COLL_NOISE_REPLAY || model.length == COLL_NOISE_TABLE) {
			plan.table = model.arrival == COLL_NOISE_REPLAY ? table : lengths;
			plan.spans = 3;
		} else {
			model.duration = 25000;
		}
		if (!coll_noise_check(&plan, &wrong))
			digest = pure_events(pure_mix(digest, &kind, sizeof(kind)), &plan, seek);
	}
	return digest;
}

static u64 pure_refusals(void)
{
	union {
		struct coll_noise_model model;
		u64 word[sizeof(struct coll_noise_model) / 8];
	} any;
	const struct coll_noise_plan plan = { .model = &any.model };
	u64 digest = 0, state = 1;
	const char *wrong;
	u32 i, k;

	for (i = 0; i < PURE_MODELS; i++) {
		for (k = 0; k < sizeof(any) / 8; k++) {
			any.word[k] = pure_random(&state);
			any.word[k] >>= pure_random(&state) % 64;
		}
		any.word[0] &= i % 2 ? 0x30303 : ~0ull;
		wrong = "";
		if (coll_noise_check(&plan, &wrong))
			for (; *wrong; wrong++)
				digest = pure_mix(digest, wrong, 1);
	}
	return digest;
}

/* Floats of bytes up to 0x3f are numbers, whatever their size. */
static void pure_fill(u64 *words, u64 *state, bool floats)
{
	u32 i;

	for (i = 0; i < PURE_BYTES / 8; i++)
		words[i] = pure_random(state) & (floats ? 0x3f3f3f3f3f3f3f3full : ~0ull);
}

static u64 pure_reductions(bool floats)
{
	static u64 left[PURE_BYTES / 8], right[PURE_BYTES / 8], result[PURE_BYTES / 8];
	u64 digest = 0, state = 2;
	u32 type, reduction, bytes;

	for (type = 0; type < 64; type++)
		for (reduction = 0; reduction < 64; reduction++) {
			bytes = coll_type_bytes(type);
			if (!bytes || reduction == COLL_USER_REDUCTION ||
			    !coll_reduction_fits(type, reduction) ||
			    coll_reduction_floats(type, reduction) != floats)
				continue;
			pure_fill(left, &state, floats);
			pure_fill(right, &state, floats);
			bytes = PURE_BYTES / bytes * bytes;
			coll_reduce_local(type, reduction, result, left, right, bytes);
			digest = pure_mix(digest, &type, sizeof(type));
			digest = pure_mix(digest, result, bytes);
		}
	return digest;
}

static u64 pure_digest(enum pure_digest which)
{
	switch (which) {
	case PURE_PLANS:
	case PURE_SEEKS:
		return pure_plans(which == PURE_SEEKS);
	case PURE_REFUSALS:
		return pure_refusals();
	case PURE_INTEGERS:
	case PURE_FLOATS:
		return pure_reductions(which == PURE_FLOATS);
	default:
		return 0;
	}
}

#endif
