#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Whether the collectives are consistent with each other (tests/multi/guidelines.c), on this
# machine.
#
#	tests/bench/guidelines.sh [SECONDS [RANKS ...]]
#
# Prints the guidelines that do not hold, and how many do. One does not hold where three of four
# samples of its left side took longer than those of its right side beside them, and the median 1.1
# times as long. SECONDS is for each guideline and size.
set -u
BUILD=${BUILD:-build}
seconds=${1:-0.3}
[ $# -ge 1 ] && shift
ranks=${*:-2 4 8}
out=$BUILD/bench
mkdir -p "$out"
: >"$out/guidelines.csv"

for p in $ranks; do
	[ -t 2 ] && printf '\r%-60s' "$p ranks" >&2
	"$BUILD/coll" run -q -n "$p" --no-prefix -- "$BUILD/tests/multi/guidelines" clock "$seconds" \
		8 1024 16384 262144 2>>"$out/errors.txt" >>"$out/guidelines.csv" || exit 1
done
[ -t 2 ] && printf '\r%60s\r' "" >&2

# guideline,ranks,bytes,samples,left,right,p25,ratio,p75
awk -F, '
{
	name[NR] = $1
	seen[$1]++
	if ($7 <= 1 || $8 <= 1.1)
		next
	if (!bad++) {
		print "| guideline | ranks | bytes | left µs | right µs | left / right | quartiles |"
		print "|---|---|---|---|---|---|---|"
	}
	printf "| %s | %d | %d | %.1f | %.1f | %.2f | %.2f to %.2f |\n", $1, $2, $3, $5, $6, $8, $7, $9
}
END {
	printf "%s%d guidelines in %d cells: %d cells do not hold\n", bad ? "\n" : "",
		length(seen), NR, bad
	exit !NR
}' "$out/guidelines.csv"
