/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A capture as tables and as JSON. */
#ifndef COLL_NOISE_VIEW_H
#define COLL_NOISE_VIEW_H

#include <jansson.h>

#include "figures.h"
#include "spectrum.h"

/* A cause of a capture's events: each source, and each cause without a source. */
struct noise_blame {
	const struct coll_noise_source *source;	/* or NULL */
	enum coll_noise_cause cause;
	u64 count, total, max;
};

struct noise_view {
	const struct node_capture *capture;
	struct noise_summary all;
	struct noise_summary *cpu;	/* as many as the capture has */
	struct noise_spectrum spectrum;
	struct noise_blame *blame;	/* of the events; the most time first */
	u32 blames;
};

/* 0 or -ENOMEM. */
int noise_view_init(struct noise_view *view, const struct node_capture *capture);
void noise_view_free(struct noise_view *view);

/* The sources by the kernel's counts, the most time first, up to a NULL; free() it. NULL: no memory. */
const struct coll_noise_source **noise_view_suspects(const struct node_capture *capture);

void noise_view_print(const struct noise_view *view, FILE *to);
/* A new object; the caller may add members. */
json_t *noise_view_json(const struct noise_view *view);
/* In the format of rtla osnoise hist: `entries` buckets of `size` ns, in microseconds. */
int noise_view_histogram(const struct noise_view *view, u64 size, u32 entries, FILE *to);

/* "thread kworker/0:1 (17)", "irq", ... Returns `text`. */
char *noise_blame_text(const struct noise_blame *blame, char text[80]);

json_t *noise_figures_json(const struct noise_figures *figures);
json_t *noise_quantiles_json(const struct noise_quantiles *quantiles);
json_t *noise_mean_json(const struct noise_mean *mean);
void noise_json_print(json_t *object, FILE *to);	/* and frees it */

#endif
