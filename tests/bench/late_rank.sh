#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# One rank with noise, on sockets: 8 nodes (network namespaces), 1 ms from each to each, an allreduce of
# 8 bytes. Rank 5 stops 10 times a second for 10 ms, as in the simulation of docs/results/late-ranks.md: ten
# latencies, 10 % of its time. Then each of its links, to and from it, holds messages back 30 times a second for 5 ms. The
# algorithms take turns, call by call.
#
#	tests/bench/late_rank.sh [SECONDS]	# 60, without noise, with it, and with bad links
#
# Prints the mean, median and p99 of a call until the last of the ranks without noise has the result,
# and until all have it.
set -eu
build=${BUILD:-build}
seconds=${1:-60}
late=5

scene() {	# NAME SPEC
	echo "$1:"
	COLL_INJECT=$2 COLL_MEASURE=off "$build/coll" lab -c 1+1+1+1+1+1+1+1 --no-clusters --delay 1ms \
		-t $((${seconds%.*} + 60)) -- "$build/tests/bench/late_rank" "$seconds" $late \
		butterfly butterfly-redundant:T=1 butterfly-redundant:T=2 butterfly-leaf:late=$late \
		butterfly-leaf-last:late=$late |
		awk -f "$(dirname "$0")/late_rank.awk"
}

scene quiet off
scene "rank $late has noise" "os:poisson:rate=10,duration=10ms,rank=$late"
bad=link:poisson:rate=30,duration=5ms,model=occupancy
scene "rank $late has bad links" "$bad,rank=$late;$bad,from=$late"
