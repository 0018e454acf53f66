#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll sim beside LogGOPSim, on the GOAL text that coll schedule writes.
#	LOGGOPSIM=DIRECTORY BUILD=build sh tests/bench/loggopsim.sh [FILE]
# DIRECTORY has the programs LogGOPSim and txt2bin (https://github.com/spcl/LogGOPSim, not in
# Debian). FILE has lines "COLLECTIVE ALGORITHM RANKS COUNT EAGER-BYTES", default those below.
# Prints CSV; times in ns. LogGOPSim's (s - 1) G for s bytes is alpha less G here.
set -eu
coll=${BUILD:-build}/coll
: "${LOGGOPSIM:?the directory of the programs LogGOPSim and txt2bin}"
latency=2500 overhead=1500 gap=1000 byte=6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cells() {
	cat <<-'END'
	alltoall linear 8 128 100000000
	alltoall linear 16 1000 100000000
	alltoall pairwise 16 1000 100000000
	allreduce butterfly 16 1 100000000
	allreduce butterfly 100 1000 100000000
	allreduce rabenseifner 100 1000 100000000
	allreduce rabenseifner 256 1000 100000000
	allreduce ring 16 1000 100000000
	bcast binomial 64 1000 100000000
	gather linear 16 100 100000000
	allreduce ring 16 10000 1000
	bcast binomial 64 1000 1000
	alltoall pairwise 16 1000 1000
	END
}

theirs() {	# EAGER
	"$LOGGOPSIM/txt2bin" -i "$work/cell.goal" -o "$work/binary" >/dev/null
	timeout 300 "$LOGGOPSIM/LogGOPSim" -f "$work/binary" -L $latency -o $overhead -g $gap \
		-G $byte -O 0 -S "$1" -b 2>/dev/null | sed -n 's/^Maximum.*: \([0-9]*\) .*/\1/p'
}

ours() {	# EAGER
	timeout 300 "$coll" sim replay "$work/cell.goal" --alpha $((latency - byte))ns --beta ${byte}ns \
		--overhead ${overhead}ns --gap ${gap}ns --nic ${byte}ns --eager "$1" --runs 1 \
		--json | sed -n 's/.*"mean_s": \([^,]*\).*/\1/p' | head -1
}

echo "collective,algorithm,ranks,count,eager,loggopsim,coll,difference"
if [ $# -gt 0 ]; then cat "$1"; else cells; fi |
while read -r collective algorithm ranks count eager; do
	"$coll" schedule "$collective" "$algorithm" "$ranks" --count "$count" --goal >"$work/cell.goal"
	awk -v cell="$collective,$algorithm,$ranks,$count,$eager" -v theirs="$(theirs "$eager")" \
		-v ours="$(ours "$eager")" 'BEGIN { ours *= 1e9
		printf "%s,%d,%.0f,%.2f%%\n", cell, theirs, ours, 100 * (ours / theirs - 1) }'
done
