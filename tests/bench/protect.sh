#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: tests/bench/protect.sh [ROUNDS]
#
# What each level of the option protect costs a call: the levels in turn, a round a minute or
# less. Prints the median over the rounds of each level's median, and of the ratio to `none`.
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
rounds=${1:-7}
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT

round=0
while [ $round -lt "$rounds" ]; do
	for collective in allreduce bcast alltoall; do
		for size in 8 1K 64K 1M 16M; do
			for level in none proof seal; do
				us=$(COLL_PROTECT=$level "$build/coll" bench $collective -n 2 --size $size \
					--time 0.3 --csv | awk -F, 'END { print $10 }')
				echo "$collective $size $round $level $us"
			done
		done
	done
	round=$((round + 1))
done >"$samples"
awk "$(cat tests/bench/median.awk)"'
	{
		cell = $1 " " $2
		if (!(cell in seen)) { seen[cell]; order[++cells] = cell }
		us[cell, $4, $3] = $5
		rounds = $3 + 1
	}
	function column(cell, level, ratio,   i, list) {
		for (i = 0; i < rounds; i++)
			list[i + 1] = us[cell, level, i] / (ratio ? us[cell, "none", i] : 1)
		return median(list, rounds)
	}
	END {
		printf "%-10s %5s %10s %10s %10s %8s %8s\n", "collective", "bytes", "none us", "proof us",
			"seal us", "proof", "seal"
		for (i = 1; i <= cells; i++) {
			split(order[i], part, " ")
			printf "%-10s %5s %10.1f %10.1f %10.1f %8.2f %8.2f\n", part[1], part[2],
				column(order[i], "none", 0), column(order[i], "proof", 0),
				column(order[i], "seal", 0), column(order[i], "proof", 1),
				column(order[i], "seal", 1)
		}
	}' "$samples"
