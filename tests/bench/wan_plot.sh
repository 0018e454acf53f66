#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The results of wan.sh as pictures: throughput as in paper 2's figures 4 and 5.
# usage: wan_plot.sh DIRECTORY
set -e
palette=$(dirname "$0")/../../tools/common/palette
out=${1:?usage: wan_plot.sh DIRECTORY}

# "size MB/s" of one algorithm, from the medians. bcast M P / T, allreduce M P^2 / T,
# gather M / T of a process, alltoall M P / T of a process.
curve() {	# CSV FACTOR ALGORITHM
	awk -F'"' -v factor="$2" -v algorithm="$3" '
	$4 == algorithm {
		split($3, size, ",")
		split($5, value, ",")
		printf "%d %.4f\n", size[2], size[2] * factor / value[5]
	}' "$1"
}

plot() {	# COLLECTIVE FACTOR TITLE
	csv=$out/wan-$1.csv
	[ -s "$csv" ] || return 0
	awk -F'"' 'NR > 1 && !seen[$4]++ { print $4 }' "$csv" >"$out/wan-$1.names"
	lines=
	while read -r name; do
		curve "$csv" "$2" "$name" >"$out/wan-$1.$(echo "$name" | tr ':=,' '...').dat"
		lines="$lines${lines:+, }'$out/wan-$1.$(echo "$name" | tr ':=,' '...').dat' with linespoints title '$(echo "$name" | sed 's/_/ /g')'"
	done <"$out/wan-$1.names"
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 760,460 dynamic background paper
		set output "$out/wan-$1.svg"
		set title "$3, 8 + 8 nodes, NIC 10 Mbit/s, WAN 40 Mbit/s, 10 ms"
		set xlabel "message size (bytes)"
		set ylabel "throughput (MB/s)"
		set logscale x 2
		set yrange [0:]
		set grid
		set key outside right
		plot $lines
	END
	rm -f "$out/wan-$1".*.dat "$out/wan-$1.names"
	echo "$out/wan-$1.svg"
}

plot bcast 16 "Bcast, M P / T"
plot allreduce 256 "Allreduce, M P^2 / T"
plot gather 1 "Gather, M / T of a process"
plot alltoall 16 "Alltoall, M P / T of a process"
