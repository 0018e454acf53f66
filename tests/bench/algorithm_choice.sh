#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The cost of the choice of algorithms on this machine: each collective with the chosen algorithm and
# with every other one, in turn in the same run (choice.sh). lab_choice.sh does the same over links.
#
#	tests/bench/algorithm_choice.sh [SECONDS_PER_SIZE [RANKS ...]]
#
# Each line: the medians of the chosen and of the best algorithm, their ratio, and their names.
set -u
BUILD=${BUILD:-build}
seconds=${1:-2}
[ $# -ge 1 ] && shift
ranks=${*:-2 4 8}
sizes=8,1K,16K,64K,1M
out=$BUILD/bench
. "$(dirname "$0")/choice.sh"

choice_bench() {
	COLL_EXPLAIN=1 "$BUILD/coll" bench "$@" -n "$p" --start clock
}

choice_begin choice
for p in $ranks; do
	for collective in barrier bcast reduce allreduce allgather alltoall gather scatter \
		reduce_scatter_block scan; do
		[ -t 2 ] && printf '\r%-60s' "$p ranks: $collective" >&2
		# Those of one node.
		choice_measure "$p ranks" $collective $sizes 100 "$seconds" \
			"farfirst|twotier|gateways|turns|debruijn|rendezvous|lanes|leader|.*-extended"
	done
done
[ -t 2 ] && printf '\r%60s\r' "" >&2
choice_report all
