// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "algo/common/levels.h"
#include "replicas.h"

struct coll_replicas coll_replicas_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const struct coll_level *node = coll_nodes_view(call, false).near;
	const struct coll_fold fold = fold_of(node ? node->parts : 1);

	if (!node)
		return (struct coll_replicas){ .replicas = 1, .nodes = 1 };
	return (struct coll_replicas){
		.replicas = replicas_of(tuning, node->smallest), .nodes = node->parts,
		.steps = fold.exchanges + (fold.excess ? 2 : 0),
	};
}
