// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <stdlib.h>

#include "compare.h"
#include "node/units.h"

static u64 *sorted_lengths(const struct node_capture *capture)
{
	u64 *length = calloc(capture->head.events + 1, sizeof(*length)), i;

	for (i = 0; length && i < capture->head.events; i++)
		length[i] = capture->event[i].duration;
	if (length)
		noise_sort(length, capture->head.events);
	return length;
}

static double compare_distance(const struct node_capture *a, const struct node_capture *b,
			       double *chance)
{
	u64 *x = sorted_lengths(a), *y = sorted_lengths(b);
	double d = 0;

	*chance = 1;
	if (x && y)
		d = noise_ks(x, a->head.events, y, b->head.events, chance);
	free(x);
	free(y);
	return d;
}

static bool is_significant(const struct noise_mean *difference)
{
	return fabs(difference->mean) > difference->error;
}

static double compare_ratio(double after, double before)
{
	return before > 0 ? after / before : 0;
}

static void print_row(const char *what, double before, double after, bool time, FILE *to)
{
	char x[24], y[24];

	if (time) {
		node_time_text(before, x);
		node_time_text(after, y);
	} else {
		snprintf(x, sizeof(x), "%.4f", before);
		snprintf(y, sizeof(y), "%.4f", after);
	}
	fprintf(to, "  %-14s %12s %12s %9.3f\n", what, x, y, compare_ratio(after, before));
}

void noise_compare_print(const struct noise_view *before, const struct noise_view *after, FILE *to)
{
	const struct noise_summary *a = &before->all, *b = &after->all;
	const struct noise_mean d = noise_mean_difference(&a->window, &b->window);
	double chance, far = compare_distance(before->capture, after->capture, &chance);

	fprintf(to, "\ncompared            %12s %12s %9s\n", "before", "after", "ratio");
	print_row("taken, %", 100 * a->share, 100 * b->share, false, to);
	print_row("events/s", a->rate, b->rate, false, to);
	print_row("p50", a->length.p50, b->length.p50, true, to);
	print_row("p99", a->length.p99, b->length.p99, true, to);
	print_row("p99.9", a->length.p999, b->length.p999, true, to);
	print_row("max", a->length.max, b->length.max, true, to);
	fprintf(to, "  taken: %+.4f points +- %.4f (95 %%): %s\n", 100 * d.mean, 100 * d.error,
		is_significant(&d) ? d.mean < 0 ? "less" : "more" : "no difference shown");
	fprintf(to, "  lengths: distance %.3f, chance of it %.3g\n", far, chance);
}

static json_t *side_json(const struct noise_summary *s)
{
	return json_pack("{sf sf so so}", "share", s->share, "events_per_s", s->rate,
			 "share_windows", noise_mean_json(&s->window), "duration",
			 noise_figures_json(&s->length));
}

json_t *noise_compare_json(const struct noise_view *before, const struct noise_view *after)
{
	const struct noise_mean d = noise_mean_difference(&before->all.window, &after->all.window);
	double chance, far = compare_distance(before->capture, after->capture, &chance);

	return json_pack("{so so so sb sf sf sf sf}", "before", side_json(&before->all), "after",
			 side_json(&after->all), "share_difference", noise_mean_json(&d),
			 "significant", is_significant(&d), "share_ratio",
			 compare_ratio(after->all.share, before->all.share), "rate_ratio",
			 compare_ratio(after->all.rate, before->all.rate), "ks_distance", far,
			 "ks_chance", chance);
}
