#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Flat algorithms against those for levels, in turn, on four nodes of four ranks (namespaces of this
# machine, so a NIC costs no more than the CPU's time). On a loaded machine only ratios count.
# usage: tests/bench/levels.sh [ITERATIONS]
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/nodes.sh"

iterations=${1:-20}
while read -r collective size algorithms; do
	job -- "$COLL" bench "$collective" --algo "$algorithms" --size "$size" --no-check \
		--iterations "$iterations" --warmup 2 || exit 1
	cat "$dir/out"
done <<'END'
barrier 8 dissemination,leader
allreduce 8 butterfly,leader,lanes
allreduce 1M rabenseifner,ring,leader,lanes
bcast 8 binomial,leader
bcast 1M vandegeijn,chain,leader,lanes
allgather 1K bruck,leader,lanes
allgather 64K ring,leader,lanes
alltoall 64 bruck,linear,leader,lanes
alltoall 16K linear,leader,lanes
END
