#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build sim/noise_cost.sh [DIRECTORY]
#
# The picture of the README: an allreduce of 8 bytes under OS noise, at 2^10 to 2^20 ranks, by
# three algorithms and without noise. Writes noise-cost.svg into DIRECTORY (docs/pictures).
# Takes about 80 s of CPU time and gnuplot.
set -e
palette=$(dirname "$0")/../tools/common/palette
build=${BUILD:-build}
out=${1:-$(dirname "$0")/../docs/pictures}
csv=$(mktemp)
trap 'rm -f "$csv"' EXIT
"$build/coll" sim allreduce --ranks 1024..1048576 --runs 5 --csv \
	--algo butterfly,butterfly-redundant:T=4,butterfly-relayed \
	--os-noise periodic:period=10ms,duration=100us --noise-semantics occupancy >"$csv"
gnuplot <<END
	$(awk -v as=gnuplot -f "$palette.awk" "$palette")
	set terminal svg size 760,430 font 'sans,13' background paper
	set output '$out/noise-cost.svg'
	set datafile separator ','
	set title 'Allreduce of 8 bytes where every node loses 1 % of its time to the OS'
	set xlabel 'ranks'
	set ylabel 'time of a call, µs'
	set logscale x 2
	set format x '2^{%L}'
	set xrange [900:1200000]
	set yrange [0:550]
	set border 3
	set tics nomirror
	set grid ytics lc rgb rule
	set key top left reverse Left
	name(algorithm) = "< grep '\"" . algorithm . "\"' $csv"
	plot name('butterfly') using 3:(\$6 * 1e6) with linespoints lw 2 pt 7 ps 0.5 \
			lc 2 title 'butterfly (recursive doubling)', \
		name('butterfly-redundant:T=4') using 3:(\$6 * 1e6) with linespoints lw 2 pt 7 ps 0.5 \
			lc 5 title 'butterfly-redundant, T = 4', \
		name('butterfly-relayed') using 3:(\$6 * 1e6) with linespoints lw 2 pt 7 ps 0.5 \
			lc 1 title 'butterfly-relayed', \
		name('butterfly') using 3:(\$7 * 1e6) with lines lw 2 dt 2 \
			lc rgb muted title 'butterfly without noise'
END
