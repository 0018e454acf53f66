/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The nodes of an allocation side by side: which differ from the others, and by what. */
#ifndef COLL_NOISE_ALLOCATION_H
#define COLL_NOISE_ALLOCATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/port.h"

enum { NODE_CAUSES_MAX = 64, NODES_TO_COMPARE = 3 };

/* What takes time there: its events where they are attributed, else what was active meanwhile. */
struct noise_node_cause {
	char text[80];		/* "thread backup": without numbers, which differ from node to node */
	double share;		/* of the watched CPUs' time */
};

struct noise_node {
	char *name;
	bool came;		/* else the rest is not set */
	u32 cpus;
	double share, rate;	/* of the time of its CPUs; events a second and CPU */
	double p99, longest;	/* ns, of the events */
	u32 worst_cpu;
	double worst_share;	/* ... of the time of that CPU */
	struct noise_node_cause cause[NODE_CAUSES_MAX];	/* the most time first */
	u32 causes;
	bool more_time, longer;	/* than the other nodes */
	const struct noise_node_cause *blamed;	/* the cause by which it exceeds them most, or NULL */
	double elsewhere;	/* its share on the median of the others */
};

struct noise_allocation {
	struct noise_node *node;
	u32 nodes, came, outliers;
	double share, longest;		/* medians of the nodes */
	double share_limit, longest_limit;	/* a node above is an outlier */
};

/* As many nodes, without names and figures. 0 or -ENOMEM. */
int noise_allocation_init(struct noise_allocation *a, u32 nodes);
void noise_allocation_free(struct noise_allocation *a);

/*
 * The figures of a node from the JSON of `collnoise measure`, which may be anything. False: it is
 * not that.
 */
bool noise_node_read(struct noise_node *node, json_t *measured);

/*
 * Finds the outliers and puts the nodes in order: outliers, then by time, then those of which
 * nothing came. A node is an outlier if its share or its longest event is above the median of all
 * nodes by more than four times their usual distance from it (the median distance, scaled to a
 * standard deviation), by half of the median, and by 0.05 % of the time or 200 us. Fewer than
 * three nodes have no outlier.
 */
void noise_allocation_judge(struct noise_allocation *a);

void noise_allocation_print(const struct noise_allocation *a, FILE *to);
json_t *noise_allocation_json(const struct noise_allocation *a);
/* Bars, by gnuplot. Errors are reported on stderr. 0 or -errno. */
int noise_allocation_draw(const struct noise_allocation *a, const char *path);

#endif
