#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# One rank of each node with noise: 4 nodes (network namespaces) of 2 or 4 ranks, --delay 5ms, an allreduce
# of 8 bytes. On each node another of its ranks stops 10 times a second for 20 ms. The algorithms take turns, call
# by call.
#
#	tests/bench/replicas.sh [SECONDS [RANKS_A_NODE ...]]	# 60; 2 4; without noise and with it
#
# Prints the mean, median and p99 of a call until the last of the ranks without noise has the result,
# and until all have it.
set -eu
build=${BUILD:-build}
seconds=${1:-60}
[ $# -eq 0 ] || shift
nodes=4

scene() {	# NAME EACH NOISY SPEC
	echo "$1, $nodes nodes of $2:"
	COLL_INJECT=$4 COLL_MEASURE=off "$build/coll" lab -c 1+1+1+1 --each "$2" --no-clusters --delay 5ms \
		-t $((${seconds%.*} + 60)) -- "$build/tests/bench/late_rank" "$seconds" "$3" \
		butterfly butterfly-redundant:T=1 butterfly-redundant:T=2 leader lanes replicas |
		awk -f "$(dirname "$0")/late_rank.awk"
}

for each in ${*:-2 4}; do
	noisy='' spec=''
	for node in 0 1 2 3; do
		rank=$((node * each + node % each))
		noisy=$noisy${noisy:++}$rank
		spec="$spec${spec:+;}os:poisson:rate=10,duration=20ms,rank=$rank"
	done
	scene quiet "$each" "$noisy" off
	scene "ranks $noisy have noise" "$each" "$noisy" "$spec"
done
