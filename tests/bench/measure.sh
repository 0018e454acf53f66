#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: tests/bench/measure.sh [ROUNDS]
#
# What measure=always costs a call: allreduce of 8 B and 64 KB by one algorithm with measure=off and
# always in turn, at 2 and 8 ranks, ROUNDS (15) of TIME (1) seconds each. Prints the median over the
# rounds of each one's median and mean, and of their ratio in a round. always measures for 1 ms at
# the start, before the calls.
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
rounds=${1:-15}
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT

round=0
while [ $round -lt "$rounds" ]; do
	for ranks in 2 8; do
		for size in 8 64K; do
			# Each goes first every other time.
			[ $((round % 2)) -eq 0 ] && order="off always" || order="always off"
			for measure in $order; do
				us=$(COLL_MEASURE=$measure COLL_MEASURE_TIME=1ms "$build/coll" bench allreduce \
					--algo butterfly -n $ranks --size $size --time "${TIME:-1}" --csv |
					awk -F, 'END { print $10, $9 }')
				echo "$ranks $size $round $measure $us"
			done
		done
	done
	round=$((round + 1))
done >"$samples"
awk "$(cat tests/bench/median.awk)"'
	# Of the rounds of a cell; `what`: 5 the median, 6 the mean.
	function column(cell, what, measure, ratio,   i, list) {
		for (i = 0; i < rounds; i++)
			list[i + 1] = us[cell, what, measure, i] / (ratio ? us[cell, what, "off", i] : 1)
		return median(list, rounds)
	}
	{
		cell = $1 " " $2
		if (!(cell in seen)) { seen[cell]; order[++cells] = cell }
		for (what = 5; what <= 6; what++)
			us[cell, what, $4, $3] = $what
		rounds = $3 + 1
	}
	END {
		printf "%5s %5s %10s %10s %8s %10s %10s %8s\n", "ranks", "bytes", "p50 off us", "always us",
			"ratio", "mean off", "always us", "ratio"
		for (i = 1; i <= cells; i++) {
			split(order[i], part, " ")
			printf "%5s %5s %10.2f %10.2f %8.3f %10.2f %10.2f %8.3f\n", part[1], part[2],
				column(order[i], 5, "off"), column(order[i], 5, "always"),
				column(order[i], 5, "always", 1), column(order[i], 6, "off"),
				column(order[i], 6, "always"), column(order[i], 6, "always", 1)
		}
	}' "$samples"
