#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	tests/bench/death_delay.sh [TIMES [RANKS ...]]	how soon a death is an error of the others
#
# A rank is killed while the others wait for it in an allreduce, TIMES times (100); prints median, p99
# and most of the microseconds until their calls have returned the error, in Markdown. They wait for
# 50 ms before, so that they sleep, or look at memory all the time (COLL_SPIN=10s).
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
times=${1:-100}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- 2 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "| ranks | links | waiting | median µs | p99 µs | most µs |"
echo "|---|---|---|---|---|---|"
for ranks; do
	for memory in auto off; do
		for spin in 100us 10s; do
			for time in $(seq "$times"); do
				rm -f "$work/word"
				COLL_MEMORY=$memory COLL_SPIN=$spin "$BUILD/coll" run -q -k -t 60 -n "$ranks" --no-prefix \
					-- "$BUILD/tests/multi/death_delay" "$work/word" 50 2>>"$work/err"
			done >"$work/delays"
			grep -v '^[0-9.]*$' "$work/delays" >&2 && exit 1
			[ "$(wc -l <"$work/delays")" = $((times * (ranks - 1))) ] || {
				cat "$work/err" >&2
				echo "$0: a rank said nothing" >&2
				exit 1
			}
			links=memory way=asleep
			[ $memory = auto ] || links=TCP
			[ $spin = 100us ] || way=polls
			sort -n "$work/delays" | awk -v head="| $ranks | $links | $way |" '
				{ delay[NR] = $1 }
				END { printf "%s %.0f | %.0f | %.0f |\n", head, delay[int((NR + 1) / 2)],
					delay[int(NR * 0.99 + 0.5)], delay[NR] }'
		done
	done
done
