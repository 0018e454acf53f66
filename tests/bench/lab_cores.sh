#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What algorithms take the cores: CPU time of all processes of a lab (coll lab) of 4 nodes with 4 ranks each, without a
# delay, a call: the difference of a long run and a short one. Other work on the machine changes it little, while it
# changes times. What interrupts take is in no process's time.
#
#	tests/bench/lab_cores.sh [-c COLLECTIVE] [-b BYTES] [-r RATE] [-i CALLS] ALGORITHM ...
#
#	-c	allreduce (default)
#	-b	of the vector, or of each block (256K)
#	-r	bit/s of each node (1G)
#	-i	calls of the long run beyond those of the short one (50)
set -u
BUILD=${BUILD:-build}
collective=allreduce bytes=256K rate=1G calls=50 short=10
while getopts c:b:r:i: option; do
	case $option in
	c) collective=$OPTARG ;;
	b) bytes=$OPTARG ;;
	r) rate=$OPTARG ;;
	i) calls=$OPTARG ;;
	*) sed -n 's/^#	tests/usage: tests/p' "$0" >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n 's/^#	tests/usage: tests/p' "$0" >&2; exit 2; }
case $calls in
'' | 0* | *[!0-9]*) echo "lab_cores.sh: -i $calls: a number of calls, at least 1" >&2 && exit 2 ;;
esac
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
trap 'exit 1' HUP INT TERM

run() {	# ALGORITHM CALLS: $out/csv has the times
	COLL_DEADLINE=60s timeout -k 5 100 "$BUILD/coll" lab -c 4 --no-clusters --each 4 --nic "$rate" --nic-queue 1M \
		--port-queue 1M -t 90 -- "$BUILD/coll" bench "$collective" --algo "$1" --size "$bytes" --iterations "$2" \
		--warmup 2 --start clock --csv >"$out/csv" 2>"$out/errors"
}

echo "| $collective of $bytes | user, ms | system, ms | all | median of a call, ms |"
echo "|---|---|---|---|---|"
for algorithm; do
	# The account of this shell's children that have ended; a pipe's shell would have none.
	times >"$out/times"
	for count in $short $((short + calls)); do
		run "$algorithm" "$count" || { echo "lab_cores.sh: $algorithm: $(head -1 "$out/errors")" >&2; exit 1; }
		times >>"$out/times"
	done
	awk -v name="$algorithm" -v calls="$calls" -v median="$(awk -F, 'END { print $10 / 1e3 }' "$out/csv")" '
		NR % 2 == 0 {
			for (i = 1; i <= 2; i++) {
				split($i, part, /[ms]/)
				seconds[NR / 2, i] = 60 * part[1] + part[2]
			}
		}
		END {
			for (i = 1; i <= 2; i++)
				ms[i] = (seconds[3, i] - 2 * seconds[2, i] + seconds[1, i]) / calls * 1e3
			printf "| %s | %.1f | %.1f | %.1f | %.1f |\n", name, ms[1], ms[2], ms[1] + ms[2], median
		}' "$out/times"
done
