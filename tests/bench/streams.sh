#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A link of 1, 2, 4 and 8 streams over a path with a high bandwidth-delay product: 4 MiB from one
# cluster to the other, 40 Mbit/s and 25 ms one way. Cases: without loss; with small windows (sockets
# of 64 KB); with a loss of one packet in a thousand, by TCP congestion control. CSV and SVG go to
# $BUILD/figures. Takes two minutes.
#
# usage: BUILD=build tests/bench/streams.sh [OPTION OF coll lab ...], such as --by netem
set -e
palette=$(dirname "$0")/../../tools/common/palette
build=${BUILD:-build}
out=$build/figures
csv=$out/streams.csv
mkdir -p "$out"
export COLL_DEADLINE=60s

measure() {	# WHAT STREAMS OPTION ...
	what=$1 streams=$2
	shift 2
	COLL_WAN_STREAMS=$streams "$build/coll" lab -c 1+1 --nic 40M --wan 40M --delay 25ms -t 100 \
		"$@" -- "$build/coll" bench bcast --algo linear --size 4M --iterations 3 --warmup 1 --csv |
		awk -F, -v what="$what" -v streams="$streams" \
			'$1 == "bcast" { printf "%s,%d,%.0f\n", what, streams, $10 / 1000 }' >>"$csv"
}

echo "what,streams,ms" >"$csv"
for streams in 1 2 4 8; do
	COLL_CONGESTION=cubic measure "cubic" $streams "$@"
	COLL_CONGESTION=cubic COLL_WAN_BUFFER_BYTES=64K measure "cubic, 64 KB" $streams "$@"
	for control in reno cubic bbr; do
		COLL_CONGESTION=$control measure "$control, loss" $streams --loss 0.001 "$@"
	done
done

column() {	# WHAT
	awk -F, -v what="$1" '{ name = $1; for (i = 2; i <= NF - 2; i++) name = name "," $i }
		name == what { print $(NF - 1), 4.194304 / $NF * 1000 }' "$csv"
}
lines=
i=0
for what in "cubic" "cubic, 64 KB" "reno, loss" "cubic, loss" "bbr, loss"; do
	i=$((i + 1))
	column "$what" >"$out/streams.$i.dat"
	lines="$lines${lines:+, }'$out/streams.$i.dat' with linespoints title '$what'"
done
gnuplot <<END
$(awk -v as=gnuplot -f "$palette.awk" "$palette")
set terminal svg size 620,400 dynamic background paper
set output "$out/streams.svg"
set title "A link over 40 Mbit/s and 25 ms, 4 MiB"
set xlabel "streams"
set ylabel "MB/s"
set logscale x 2
set yrange [0:]
set grid
set key outside right
plot $lines
END
rm -f "$out"/streams.*.dat
cat "$csv"
