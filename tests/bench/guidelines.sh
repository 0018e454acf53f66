#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Whether the collectives are consistent with each other (tests/multi/guidelines.c): on this machine, over
# links with a delay, over circuits.
#
#	tests/bench/guidelines.sh [-b BYTES,..] [SECONDS [RANKS ...]]
#	tests/bench/guidelines.sh -l DELAY/RATE,.. [-b BYTES,..] [-t SECONDS] [SECONDS]
#	tests/bench/guidelines.sh -k PORTS,.. [-b BYTES,..] [-t SECONDS] [SECONDS]
#
# -l: on 4 nodes of 4 ranks with such links between them (coll lab), 10ms/1G for example. -k: on 4 nodes with so
# many ports to an optical switch, of 100 Mbit/s and a reconfiguration delay of 10 ms.
#
# Prints the guidelines that do not hold, and how many do. One does not hold where three of four
# samples of its left side took longer than those of its right side beside them, and the median 1.1
# times as long. SECONDS is for each guideline and size; -t for each link, or number of ports (120): what is
# not measured by then is left out, and counted.
set -u
BUILD=${BUILD:-build}
links= ports= bytes= total=120
while getopts l:k:b:t: option; do
	case $option in
	l) links=$OPTARG ;;
	k) ports=$OPTARG ;;
	b) bytes=$OPTARG ;;
	t) total=$OPTARG ;;
	*) sed -n 's/^#	tests/usage: tests/p' "$0" >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
seconds=${1:-0.3}
[ $# -ge 1 ] && shift
ranks=${*:-2 4 8}
[ -n "$bytes" ] || { [ -n "$links$ports" ] && bytes=8,16384 || bytes=8,1024,16384,262144; }
bytes=$(echo "$bytes" | tr , ' ')
out=$BUILD/bench
mkdir -p "$out"
: >"$out/guidelines.csv"

show() {
	[ -t 2 ] && printf '\r%-60s' "$1" >&2
}

# Appends the lines, with the place before them. A lab ends in time; its lines are as many as it had.
in_lab() {	# PLACE LAB-OPTION ...
	place=$1
	shift
	show "$place"
	# shellcheck disable=SC2086
	COLL_DEADLINE=60s timeout -k 5 $((total + 60)) "$BUILD/coll" lab -t "$total" "$@" -- \
		"$BUILD/tests/multi/guidelines" barrier "$seconds" $bytes >"$out/guidelines.part" \
		2>>"$out/errors.txt"
	code=$?
	sed "s|^|$place,|" "$out/guidelines.part" >>"$out/guidelines.csv"
	case $code in
	0) ;;
	124) left="$left${left:+, }$place after $(grep -c . "$out/guidelines.part") cells" ;;
	*) echo "guidelines.sh: $place: it failed: $out/errors.txt" >&2 && return 1 ;;
	esac
}

left=
for link in $(echo "$links" | tr , ' '); do
	case $link in
	?*/?*) ;;
	*) echo "guidelines.sh: -l $link: a link is DELAY/RATE, 10ms/1G for example" >&2 && exit 2 ;;
	esac
	in_lab "$link" -c 1+1+1+1 --each 4 --no-clusters --delay "${link%/*}" --wan "${link#*/}" \
		--nic "${link#*/}" --nic-queue 1M --queue 1M --port-queue 1M || exit 1
done
for k in $(echo "$ports" | tr , ' '); do
	in_lab "$k ports" -c 4 --circuits "$k" --nic 100M || exit 1
done
[ -n "$links$ports" ] && ranks=
for p in $ranks; do
	show "$p ranks"
	# shellcheck disable=SC2086
	"$BUILD/coll" run -q -n "$p" --no-prefix -- "$BUILD/tests/multi/guidelines" clock "$seconds" \
		$bytes >"$out/guidelines.part" 2>>"$out/errors.txt" || exit 1
	sed 's/^/this machine,/' "$out/guidelines.part" >>"$out/guidelines.csv"
done
[ -t 2 ] && printf '\r%60s\r' "" >&2

# where,guideline,ranks,bytes,samples,left,right,p25,ratio,p75
awk -F, '
{
	where[$1]++
	seen[$2]++
	if ($8 <= 1 || $9 <= 1.1)
		next
	not_held[$1]++
	if (!bad++) {
		print "| where | guideline | ranks | bytes | left µs | right µs | left / right | quartiles |"
		print "|---|---|---|---|---|---|---|---|"
	}
	printf "| %s | %s | %d | %d | %.1f | %.1f | %.2f | %.2f to %.2f |\n", $1, $2, $3, $4, $6, $7, $9,
		$8, $10
}
END {
	if (bad)
		print ""
	for (place in where)
		printf "%s: %d cells, %d do not hold\n", place, where[place], not_held[place]
	printf "%d guidelines in %d cells: %d cells do not hold\n", length(seen), NR, bad
	exit !NR
}' "$out/guidelines.csv"
code=$?
[ -z "$left" ] || echo "left out after $total s: the rest of $left"
exit $code
