/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The charts of a page, as inline SVG: they are whole without the script, which only makes
 * them answer to the pointer. Colours are classes of page.css.
 */
#ifndef COLL_NOISE_CHART_H
#define COLL_NOISE_CHART_H

#include "points.h"
#include "view.h"

/* The class of a cause's marks: "s1" ... "s8". */
const char *chart_class(enum coll_noise_cause cause);

void chart_timeline(const struct noise_points *points, bool attributed, FILE *to);
void chart_heat(const struct noise_view *view, const struct noise_points *points,
		const struct noise_heat *heat, FILE *to);
void chart_lengths(const struct noise_view *view, FILE *to);
void chart_spectrum(const struct noise_view *view, FILE *to);

/* What the script draws from, as JSON. */
void chart_data(const struct noise_points *points, const struct noise_heat *heat,
		const struct noise_view *view, FILE *to);

#endif
