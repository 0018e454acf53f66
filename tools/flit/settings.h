/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The options of coll sim flit, parsed. */
#ifndef COLL_FLIT_SETTINGS_H
#define COLL_FLIT_SETTINGS_H

#include "flit.h"

enum { JOBS_MAX = 256 };

struct flit_settings {
	struct flit_plan plan;
	const char *net, *values, *rates, *data, *rounds, *bytes, *trace, *series, *distribution;
	struct flit_collective collective;
	u32 routing;		/* or FLIT_NONE: what fits the network */
	u32 jobs;
	u32 given;		/* options of some traffic alone: bits, see flit_refuse_others() */
	bool json, csv, broken, proof_only, proof, no_proof, unsafe;
};

/* Refuses options of another traffic than the one that is chosen; false: stderr says which. */
bool flit_refuse_others(const struct flit_settings *s);

#endif
