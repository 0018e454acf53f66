// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Linear: the root sends each rank its block straight from its place: algo/common/fan.h. */
#include "algo/common/fan.h"

const struct coll_algo coll_scatter_linear = {
	.collective = COLL_SCATTER,
	.name = "linear",
	.about = "the root sends each rank its block, straight from the vector",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
};

const struct coll_algo coll_scatter_direct = {
	.collective = COLL_SCATTER,
	.name = "direct",
	.about = "all blocks at once over all links: linear",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
	.baseline = true,
};

const struct coll_algo coll_scatterv_linear = {
	.collective = COLL_SCATTERV,
	.name = "linear",
	.about = "the root sends each rank its block, straight from the vector",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
};

const struct coll_algo coll_scatterv_direct = {
	.collective = COLL_SCATTERV,
	.name = "direct",
	.about = "all blocks at once over all links: linear",
	.ordered = true,
	.cost = fan_blocks_cost,
	.emit = emit_fan,
	.baseline = true,
};
