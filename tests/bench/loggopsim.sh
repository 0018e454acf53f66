#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll sim beside LogGOPSim, on the GOAL text that coll schedule writes, by both rules for messages.
#	LOGGOPSIM=DIRECTORY BUILD=build sh tests/bench/loggopsim.sh [FILE]
# DIRECTORY has the programs LogGOPSim and txt2bin (https://github.com/spcl/LogGOPSim, not in
# Debian). FILE has lines "COLLECTIVE ALGORITHM RANKS COUNT EAGER-BYTES"; without it, they are every
# algorithm on one level, RANKS ranks, COUNTS doubles and EAGERS bytes.
# Prints CSV, times in ns; the last line, a comment, is the sum of it. Exit code 1: by the rules of
# goal a cell differs by more than 1 %. LogGOPSim's (s - 1) G for s bytes is, by the rules of nic,
# alpha less G.
set -eu
coll=${BUILD:-build}/coll
: "${LOGGOPSIM:?the directory of the programs LogGOPSim and txt2bin}"
latency=2500 overhead=1500 gap=1000 byte=6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cells() {
	"$coll" verify --list | awk '$2 !~ /^(world|leader|lanes)$/ && !/-extended / { print $1, $2 }' |
	while read -r collective algorithm; do
		for ranks in ${RANKS:-8 16 100 256}; do
			for count in ${COUNTS:-1 128 1000}; do
				for eager in ${EAGERS:-100000000 1000}; do
					echo "$collective $algorithm $ranks $count $eager"
				done
			done
		done
	done
}

theirs() {	# EAGER
	timeout 300 "$LOGGOPSIM/LogGOPSim" -f "$work/binary" -L $latency -o $overhead -g $gap \
		-G $byte -O 0 -S "$1" -b 2>/dev/null | sed -n 's/^Maximum.*: \([0-9]*\) .*/\1/p'
}

ours() {	# EAGER OPTION...
	eager=$1
	shift
	timeout 300 "$coll" sim replay "$work/cell.goal" --overhead ${overhead}ns --gap ${gap}ns \
		--nic ${byte}ns --eager "$eager" --runs 1 --json "$@" |
		sed -n 's/.*"mean_s": \([^,]*\).*/\1/p' | head -1
}

# The program of a cell, unless the last cell had it; false: it has none.
write_goal() {	# COLLECTIVE ALGORITHM RANKS COUNT
	[ "$*" = "$written" ] && return
	written=
	"$coll" schedule "$1" "$2" "$3" --count "$4" --reduce-ns 1 --goal >"$work/cell.goal" 2>/dev/null &&
		"$LOGGOPSIM/txt2bin" -i "$work/cell.goal" -o "$work/binary" >/dev/null && written=$*
}

if [ $# -gt 0 ]; then cat "$1"; else cells; fi >"$work/cells"
written=
while read -r collective algorithm ranks count eager; do
	write_goal "$collective" "$algorithm" "$ranks" "$count" || continue
	echo "$collective,$algorithm,$ranks,$count,$eager,$(theirs "$eager"),$(
		ours "$eager" --message-semantics goal --alpha ${latency}ns),$(
		ours "$eager" --alpha $((latency - byte))ns --beta ${byte}ns)"
done <"$work/cells" | awk -F , '
function difference(ours, theirs) { return 100 * (ours / theirs - 1) }
function size(x) { return x < 0 ? -x : x }
BEGIN { print "collective,algorithm,ranks,count,eager,loggopsim,goal,difference,nic,difference" }
!$6 || !$7 || !$8 {
	print "# no time: " $0
	next
}
{
	ours = sprintf("%.0f", $7 * 1e9)
	goal = difference(ours, $6)
	nic = difference($8 * 1e9, $6)
	equal += ours == $6
	nic_equal += size(nic) <= 1
	within += size(goal) <= 1
	if (size(goal) > size(most)) most = goal
	printf "%s,%s,%s,%s,%s,%d,%.0f,%.2f%%,%.0f,%.2f%%\n", $1, $2, $3, $4, $5, $6, ours, goal,
		$8 * 1e9, nic
	fflush()
}
END {
	printf "# %d cells; goal: %d equal, %d within 1 %%, at most %.2f %%; nic: %d within 1 %%\n", NR,
		equal, within, most, nic_equal
	exit within < NR
}'
