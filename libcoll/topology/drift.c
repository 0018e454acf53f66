// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stddef.h>

#include "costs.h"
#include "drift.h"
#include "lateness.h"
#include "libcoll/base/fit.h"
#include "libcoll/exec/own_costs.h"

enum {
	DRIFT_SAMPLES_MIN = 8,	/* of a class: fewer may all have been held up */
	DRIFT_RANKS_MIN = 4,	/* of those that tell of themselves, where not all ranks can */
};

/* By so much a new number differs from the one in use. */
static const double drift_least = 1.25;

/* The fields of a class's costs. NULL: it has none of its own. */
struct drift_fields {
	double *alpha, *overhead, *beta, *byte_gap;
};

static struct drift_fields fields_of(struct coll_machine *m, enum coll_link_class class)
{
	struct coll_level_cost *inside;

	if (class == COLL_CLASS_WAN)
		return (struct drift_fields){ .alpha = &m->wan_alpha };
	if (class == COLL_CLASS_SWITCH)
		return (struct drift_fields){ .alpha = &m->switch_alpha, .beta = &m->switch_beta };
	if (class == COLL_CLASS_CLUSTER)
		return (struct drift_fields){ &m->alpha, &m->overhead, &m->beta, &m->byte_gap };
	inside = &m->inside[class];
	return (struct drift_fields){ &inside->alpha, &inside->overhead, &inside->beta,
				      &inside->byte_gap };
}

static bool has_drifted(double value, double now)
{
	return now > value * drift_least || value > now * drift_least;
}

/* A cost in use, what it was found to be, and from what. */
struct drift_cost {
	double *value, *found;
	struct coll_drift *drift;
};

static bool was_given(const struct drift_cost *cost)
{
	return coll_cost_is_given(*cost->value, *cost->found);
}

/* Sets a cost that nobody gave. A part of it (overhead, gap) is at most the whole. */
static bool drift_set(struct drift_cost cost, struct drift_cost part, double now, const struct coll_drift *why)
{
	if (was_given(&cost) || (*cost.value > 0 && !has_drifted(*cost.value, now)))
		return false;
	*cost.value = *cost.found = now;
	*cost.drift = *why;
	if (part.value && *part.value > now && !was_given(&part)) {
		*part.value = *part.found = now;
		part.drift->from = why->from;
		part.drift->cut = why->call;
	}
	return true;
}

/* A number that was taken over from a nearer class of links (costs.c), or is a usual one (job/machine.c). */
static bool is_taken_over(double value, double nearer, double found, bool assumed)
{
	return coll_cost_is_found(value, nearer) || (assumed && coll_cost_is_found(value, found));
}

/* What is assumed keeps its proportion to the latency, and so the choice, until it is measured itself. */
static void drift_in_proportion(struct coll_class_cost *cost, const struct drift_fields *fields, double factor)
{
	if (!cost->assumed || cost->beta_drift.samples || !fields->beta ||
	    !coll_cost_is_found(*fields->beta, cost->cost.beta))
		return;
	*fields->beta = cost->cost.beta *= factor;
	if (fields->byte_gap && coll_cost_is_found(*fields->byte_gap, cost->cost.byte_gap) && !cost->gap_drift.samples)
		*fields->byte_gap = cost->cost.byte_gap *= factor;
}

/* Such a number goes with those of the nearer class. */
static void drift_follow(struct coll_machine *machine, struct coll_costs *costs,
			 enum coll_link_class from, const struct coll_level_cost *old)
{
	const struct drift_fields now = fields_of(machine, from);
	struct drift_fields fields;
	enum coll_link_class class;

	for (class = from + 1; class < COLL_CLASS_WAN; class++) {
		struct coll_class_cost *cost = &costs->of[class];

		fields = fields_of(machine, class);
		if (*now.alpha > 0 &&
		    is_taken_over(*fields.alpha, old->alpha, cost->cost.alpha, cost->assumed)) {
			drift_in_proportion(cost, &fields, *now.alpha / *fields.alpha);
			if (coll_cost_is_found(cost->cost.alpha, *fields.alpha))
				cost->cost.alpha = *now.alpha;
			*fields.alpha = *now.alpha;
			cost->alpha_drift = costs->of[from].alpha_drift;
		}
		if (*now.beta > 0 &&
		    is_taken_over(*fields.beta, old->beta, cost->cost.beta, cost->assumed)) {
			if (coll_cost_is_found(cost->cost.beta, *fields.beta))
				cost->cost.beta = *now.beta;
			/* The part of it in which the sender can send no other stays that part, until that tells. */
			if (fields.byte_gap && coll_cost_is_found(*fields.byte_gap, cost->cost.byte_gap) &&
			    !cost->gap_drift.samples)
				*fields.byte_gap = cost->cost.byte_gap *= *now.beta / *fields.beta;
			*fields.beta = *now.beta;
			cost->beta_drift = costs->of[from].beta_drift;
		}
	}
}

/* Where a part of a farther class's costs was taken over, or nobody knows it, it becomes the nearer one's. */
static void drift_follow_part(struct drift_cost cost, double old, const double *now, bool assumed,
			      const struct coll_drift *why)
{
	if (!cost.value || !now || *now <= 0 || coll_cost_is_found(*now, old) ||
	    (!is_taken_over(*cost.value, old, *cost.found, assumed) && !(assumed && *cost.value <= 0)))
		return;
	*cost.value = *cost.found = *now;
	*cost.drift = *why;
}

/* The same for overhead and gap, where those of the nearer class have changed. */
static void drift_follow_parts(struct coll_machine *machine, struct coll_costs *costs,
			       enum coll_link_class from, const struct coll_level_cost *old)
{
	const struct drift_fields now = fields_of(machine, from);
	enum coll_link_class class;

	for (class = from + 1; class < COLL_CLASS_WAN; class++) {
		const struct drift_fields far = fields_of(machine, class);
		struct coll_class_cost *cost = &costs->of[class];

		drift_follow_part((struct drift_cost){ far.overhead, &cost->cost.overhead, &cost->overhead_drift },
				  old->overhead, now.overhead, cost->assumed, &costs->of[from].overhead_drift);
		drift_follow_part((struct drift_cost){ far.byte_gap, &cost->cost.byte_gap, &cost->gap_drift },
				  old->byte_gap, now.byte_gap, cost->assumed, &costs->of[from].gap_drift);
	}
}

/*
 * The latency that messages tell; 0: none. Long ones do not tell it, as bytes are most of their time; but it is no
 * longer than all of that, whatever a byte is said to cost.
 */
static double latency_of(double alpha, struct coll_fit_sample *sample, uint32_t samples, bool fits,
			 const struct coll_fit_line *line)
{
	double most;

	if (fits && coll_fit_tells_base(sample, samples, line))
		return line->base;
	most = coll_fit_least(sample, samples);
	return alpha > most ? most : 0;
}

static bool drift_class(struct coll_machine *machine, struct coll_costs *costs,
			enum coll_link_class class, struct coll_fit_sample *sample,
			const struct coll_drift *why)
{
	const struct drift_fields fields = fields_of(machine, class);
	struct coll_class_cost *cost = &costs->of[class];
	const struct coll_level_cost old = coll_costs_of(machine, class);
	/* A byte of a WAN is one of all its links: of a message it is one of the network's. */
	struct coll_fit_line line = { old.alpha, fields.beta && old.beta > 0 ? old.beta : machine->beta };
	bool changed = false, fits;
	double alpha;

	if (line.slope <= 0)		/* messages of one size do not tell it */
		line.slope = COLL_USUAL_BETA;
	if (why->samples < DRIFT_SAMPLES_MIN)
		return false;
	fits = coll_fit_line(sample, why->samples, &line);
	alpha = latency_of(old.alpha, sample, why->samples, fits, &line);
	if (alpha > 0)
		changed = drift_set((struct drift_cost){ fields.alpha, &cost->cost.alpha, &cost->alpha_drift },
				    (struct drift_cost){ fields.overhead, &cost->cost.overhead,
							 &cost->overhead_drift }, alpha, why);
	if (fits && fields.beta && coll_fit_tells_slope(sample, why->samples, &line))
		changed |= drift_set((struct drift_cost){ fields.beta, &cost->cost.beta, &cost->beta_drift },
				     (struct drift_cost){ fields.byte_gap, &cost->cost.byte_gap, &cost->gap_drift },
				     line.slope, why);
	if (changed && class < COLL_CLASS_WAN) {
		drift_follow(machine, costs, class, &old);
		drift_follow_parts(machine, costs, class, &old);
	}
	return changed;
}

static bool tells_costs(const struct coll_sample *sample, const struct coll_samples_found *found)
{
	return (int32_t)(sample->run - found->recent) >= 0 && coll_sample_is_good(sample);
}

/* ---- of ranks' own sends and reductions ------------------------------------------ */

/*
 * The lower median of a number of those that tell it, `*ranks` of them; 0: too few do. So half of the ranks may
 * be wrong by any factor, as a mean's would be of its logarithms: one that is slow is late by every algorithm, and
 * says nothing of which one is best for the others.
 */
static double own_median(const struct coll_samples_found *found, size_t offset, uint32_t *ranks)
{
	double value[OWN_KEPT * OWN_SLOTS];
	uint32_t i;

	*ranks = 0;
	for (i = 0; i < found->owns; i++) {
		const double next = *(const double *)((const char *)&found->own[i] + offset);

		if (next > 0)
			value[(*ranks)++] = next;
	}
	if (!*ranks || (found->ranks > OWN_SLOTS && *ranks < DRIFT_RANKS_MIN))
		return 0;
	return coll_fit_median(value, *ranks);
}

/*
 * Sets a cost that is part of another one, `*whole`, or of none. Where that is not known, usual numbers keep
 * their proportion: a short overhead beside a long latency that was only assumed would favour many messages.
 */
static bool drift_set_own(const struct coll_samples_found *found, size_t offset, enum coll_link_class class,
			  struct drift_cost cost, const double *whole)
{
	struct coll_drift why = { .call = found->call, .from = class };
	double now = own_median(found, offset, &why.samples);

	if (whole && now > *whole)
		now = *whole;
	return now > 0 && drift_set(cost, (struct drift_cost){ .value = NULL }, now, &why);
}

static bool drift_class_own(struct coll_machine *machine, struct coll_costs *costs, enum coll_link_class class,
			    const struct coll_samples_found *found)
{
	const struct drift_fields fields = fields_of(machine, class);
	const struct coll_level_cost old = coll_costs_of(machine, class);
	struct coll_class_cost *cost = &costs->of[class];
	const size_t at = coll_class_level(class) * sizeof(double);
	const bool overhead = drift_set_own(
		found, offsetof(struct coll_own_found, overhead) + at, class,
		(struct drift_cost){ fields.overhead, &cost->cost.overhead, &cost->overhead_drift }, fields.alpha);
	const bool gap = drift_set_own(
		found, offsetof(struct coll_own_found, byte_gap) + at, class,
		(struct drift_cost){ fields.byte_gap, &cost->cost.byte_gap, &cost->gap_drift }, fields.beta);

	drift_follow_parts(machine, costs, class, &old);
	return overhead || gap;
}

static bool drift_own(struct coll_machine *machine, struct coll_costs *costs,
		      const struct coll_samples_found *found)
{
	bool changed = drift_set_own(found, offsetof(struct coll_own_found, gamma), 0,
				     (struct drift_cost){ &machine->gamma, &costs->gamma, &costs->gamma_drift }, NULL);
	enum coll_link_class class;

	for (class = 0; class < COLL_CLASS_WAN; class++)
		if (fields_of(machine, class).overhead)
			changed |= drift_class_own(machine, costs, class, found);
	return changed;
}

bool coll_drift(struct coll_machine *machine, struct coll_costs *costs,
		const struct coll_samples_found *found)
{
	struct coll_fit_sample of_class[SAMPLE_CELLS];
	const struct coll_sample *sample = found->sample;
	struct coll_drift why = { .call = found->call };
	enum coll_link_class class;
	bool changed = false;
	uint32_t i;

	for (class = 0; class < COLL_CLASSES; class++) {
		why.samples = 0;
		for (i = 0; i < found->samples; i++)
			if (sample[i].class == class && tells_costs(&sample[i], found))
				of_class[why.samples++] = (struct coll_fit_sample){
					.bytes = sample[i].bytes, .seconds = sample[i].ns * 1e-9
				};
		why.from = class;
		changed |= drift_class(machine, costs, class, of_class, &why);
	}
	return drift_own(machine, costs, found) || changed;
}

/* Delays are what messages take longer than by the costs, so these go first. */
static bool drift_and_noise(struct coll_machine *machine, struct coll_costs *costs,
			    const struct coll_samples_found *found)
{
	const bool drifted = !found->shared && coll_drift(machine, costs, found);

	return coll_lateness(machine, &costs->late, found) || drifted;
}

bool coll_costs_surveyed(struct coll_group *group, const struct coll_samples_found *found)
{
	struct coll_context *context = group->context;
	const bool changed = drift_and_noise(&group->options.machine, &group->costs, found);

	if (group == context->world) {
		context->options.machine = group->options.machine;
		context->costs = group->costs;
	}
	return changed;
}
