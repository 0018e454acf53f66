#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: tests/bench/measure.sh [-v] [ROUNDS]
#
# What measuring costs a call: allreduce of 8 B and 64 KB by one algorithm with measure=off, auto and
# always in turn, and off once more, at 2 and 8 ranks, ROUNDS (60) of TIME (0.25) seconds each. Prints
# the median over the rounds of the calls' median and mean, and of their ratio to the first `off` of the
# same round, with its 95 % interval: that of the second `off` is what the machine does by itself.
# always measures for 1 ms at the start, before the calls.
#
#	-v	in the emulated machine (tests/vm/run -i), where time is what was executed, a nanosecond an
#		instruction, on one processor: nothing depends on this machine's load
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
machine=
[ "${1:-}" != -v ] || { machine=vm; shift; }
rounds=${1:-60}
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT

if [ "$machine" ]; then
	BUILD=$build tests/vm/run -i -c 1 -m 2048 -t 3600 -s 3500 -p "$build/coll" -p /bin/sh -p /bin/rm \
		-p tests/bench/measure_calls.sh 6.12 \
		"measure_calls.sh coll $rounds ${TIME:-0.05} measured" >"$samples.tap"
	sed -n 's/^.*# \(measure_calls.sh: \)*measured //p' "$samples.tap" >"$samples"
	[ -s "$samples" ] || cat "$samples.tap" >&2
	rm -f "$samples.tap"
else
	sh tests/bench/measure_calls.sh "$build/coll" "$rounds" "${TIME:-0.25}" >"$samples"
fi
[ -s "$samples" ] || exit 1
awk "$(cat tests/bench/median.awk)"'
	# Of the rounds of a cell, into `list`; `what`: 5 the median, 6 the mean. Returns the median.
	function column(cell, what, measure, ratio,   i) {
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
		ways = split("off-again auto always", way, " ")
		printf "%5s %5s %-9s %8s %8s %6s  %-16s %8s %8s %6s  %-16s\n", "ranks", "bytes", "", "p50 off",
			"us", "ratio", "95 %", "mean off", "us", "ratio", "95 %"
		for (i = 1; i <= cells; i++) {
			split(order[i], part, " ")
			for (k = 1; k <= ways; k++) {
				printf "%5s %5s %-9s", part[1], part[2], way[k]
				for (what = 5; what <= 6; what++) {
					printf " %8.3f %8.3f", column(order[i], what, "off"),
						column(order[i], what, way[k])
					ratio = column(order[i], what, way[k], 1)
					printf " %6.3f  %-16s", ratio, median_interval(list, rounds)
				}
				printf "\n"
			}
		}
	}' "$samples"
