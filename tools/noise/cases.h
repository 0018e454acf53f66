/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Pieces of time and who had them, as the module tells: latencies, and what passed a threshold. */
#ifndef COLL_NOISE_CASES_H
#define COLL_NOISE_CASES_H

#include <jansson.h>
#include <stdio.h>

#include "node/netlink.h"
#include "node/capture.h"

enum { NOISE_PARTS = 16 };

struct noise_part {
	u8 cause;
	u32 number;
	u64 cgroup;		/* 0: no thread */
	u64 time;		/* ns */
	char name[40];
};

struct noise_case {
	u32 cpu;
	u64 start;		/* CLOCK_MONOTONIC */
	u64 total, timer;	/* ns; timer: to the timer's interrupt, or 0 */
	u32 parts;
	struct noise_part part[NOISE_PARTS];	/* the longest first */
};

struct noise_passed {
	bool any;		/* a threshold was passed */
	u64 threshold;
	struct noise_case one;
	u32 pid;		/* the thread that the CPU had then */
	char comm[20];
	char stack[4096];	/* a function a line; empty: not to be had */
};

/* From an attribute CASE. 0 or -EPROTO. */
int noise_case_take(struct nlattr *nest, u32 cpu, struct noise_case *one);
/* What passed a threshold of a watch; reads all that there are, and keeps the first. */
int noise_passed_read(struct netlink *netlink, struct noise_passed *passed);

/* "thread kworker/0:1 (17) in /system.slice", "irq local_timer (236)", "idle". Returns `text`. */
char *noise_part_text(const struct noise_part *part, char *text, size_t bytes);
void noise_case_print(const struct noise_case *one, FILE *to);
void noise_passed_print(const struct noise_passed *passed, FILE *to);
json_t *noise_case_json(const struct noise_case *one);
json_t *noise_passed_json(const struct noise_passed *passed);

#endif
