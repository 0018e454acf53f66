/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Captures in the formats of other tools.
 *
 *	netgauge	Netgauge's selfish and LogGOPSim's --noise-trace: lines of
 *			"start duration", ns, one CPU; # begins a comment
 *	osnoise		the trace of the kernel's osnoise tracer (its *_noise and
 *			sample_threshold tracepoints)
 *	ftq		lines of "time work": the work done in each quantum, one CPU;
 *			noise is the missing work
 *	csv		cpu,start_ns,duration_ns,cause,number,name
 */
#ifndef COLL_NOISE_FORMATS_H
#define COLL_NOISE_FORMATS_H

#include "node/capture.h"

enum noise_format {
	NOISE_CAPTURE,
	NOISE_NETGAUGE,
	NOISE_OSNOISE,
	NOISE_FTQ,
	NOISE_CSV,
	NOISE_FORMATS,
	NOISE_GUESS = NOISE_FORMATS,	/* detected from the content */
};

extern const char *const noise_format_names[NOISE_FORMATS];

struct noise_import {
	enum noise_format format;
	u32 cpu;		/* CPU, if the format names none */
	bool samples;		/* osnoise: whole gaps, not their parts with causes */
};

/* Appends to the capture; call node_capture_finish() afterwards. `data` is untrusted. */
int noise_format_parse(const void *data, size_t bytes, const struct noise_import *import,
		       struct node_capture *capture, struct coll_text_error *error);

/* One CPU (an index) for netgauge and ftq, all CPUs for other formats. 0 or -errno. */
int noise_format_print(const struct node_capture *capture, enum noise_format format, u32 cpu,
		       u64 quantum, FILE *to);
/* Whether a file of this format holds one CPU only. */
bool noise_format_is_single(enum noise_format format);

/* Loads a file of any format, finished; errors are reported on stderr. 0 or -errno. */
int noise_load(const char *command, const char *path, const struct noise_import *import,
	       struct node_capture *capture);

#endif
