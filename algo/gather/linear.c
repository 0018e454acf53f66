// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Linear: each rank sends its block straight to its place at the root: algo/common/fan.h. */
#include "algo/common/fan.h"

const struct coll_algo coll_gather_linear = {
	.collective = COLL_GATHER,
	.name = "linear",
	.about = "all send to the root, straight into place",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
};

const struct coll_algo coll_gather_direct = {
	.collective = COLL_GATHER,
	.name = "direct",
	.about = "all blocks at once over all links: linear",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
	.baseline = true,
};

const struct coll_algo coll_gatherv_linear = {
	.collective = COLL_GATHERV,
	.name = "linear",
	.about = "all send to the root, straight into place",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
};

const struct coll_algo coll_gatherv_direct = {
	.collective = COLL_GATHERV,
	.name = "direct",
	.about = "all blocks at once over all links: linear",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
	.baseline = true,
};
