#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build sim/figures.sh [--quick]
#
# Figures of the papers by the simulator: 5 to 21 of paper 1 (docs/papers/paper-1.md), 4 and 5 of
# paper 2 (docs/papers/paper-2.md), 6 to 9 of paper 5 (docs/papers/paper-5.md). CSV and SVG go to
# $BUILD/figures. Takes about 20 minutes of CPU time. --quick: fewer points, and fewer runs of many
# ranks, 1.5 minutes; EFFORT=N: N times as many of these. LARGEST=K: at most 2^K ranks. An interrupted
# run can be continued: columns of the maps are kept until $BUILD/coll is newer.
set -e
palette=$(dirname "$0")/../tools/common/palette
build=${BUILD:-build}
out=$build/figures
coll=$build/coll
largest=${LARGEST:-17}
quick=
if [ "$1" = --quick ]; then
	quick=1
elif [ $# -gt 0 ]; then
	echo "usage: $0 [--quick]" >&2
	exit 2
fi
mkdir -p "$out/columns"

# ---- jitter -----------------------------------------------------------------------

# runs EXPONENT EFFORT: 30, as the paper; when quick no more than EFFORT runs of 2^17 ranks
# are worth in messages, and two at least
runs() {
	awk -v k="$1" -v e="$2" -v quick="$quick" 'BEGIN {
		n = quick ? int(e * 2 ^ (17 - k)) : 30
		print (n > 30 ? 30 : n < 2 ? 2 : n)
	}'
}

# point X EXPONENT RUNS ARGUMENT...: a line of a family's CSV
point() {
	point_x=$1 point_k=$2 point_runs=$3
	shift 3
	"$coll" sim allreduce --algo butterfly,butterfly-redundant:T=best --beta 1e-9 \
		--gamma 1e-10 --noise-semantics event --ranks $((1 << point_k)) \
		--runs "$point_runs" --json "$@" | awk -v x="$point_x" -v k="$point_k" '
	function number(name) {
		if (!match($0, "\"" name "\": [^,}]*"))
			return ""
		return substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
	}
	/"algo": "butterfly",/ { mean = number("mean_s") }
	/"algo": "butterfly-redundant"/ {
		printf "%s,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%d,%.6g,%.6g\n", x, k, number("runs"),
			mean, number("ideal_s"), mean / number("ideal_s"), number("mean_s"),
			number("mean_s") / mean, number("best_T"), number("again_s"),
			number("again_s") / mean
	}'
}

# points X EFFORT SEED ALPHA BYTES PERIOD DURATION: all numbers of ranks
points() {
	k=2
	while [ $k -le "$largest" ]; do
		point "$1" $k "$(runs $k "$2")" --seed "$3" --alpha "$4" --size "$5" \
			--os-noise "periodic:period=$6,duration=$7" \
			--link-noise "poisson:rate=$(awk -v p="$6" 'BEGIN { print 1 / p }'),duration=$7"
		k=$((k + 1))
	done
}

# column FAMILY X EFFORT SEED ALPHA BYTES PERIOD DURATION: made, or kept from before
column() {
	family=$1
	shift
	kept=$out/columns/$family-$1-to-$largest${quick:+-quick-$2}.csv
	if [ "$(find "$kept" -newer "$coll" 2>/dev/null)" ]; then
		echo "jitter: column $3 of $columns, $1 of $family: kept" >&2
	else
		echo "jitter: column $3 of $columns, $1 of $family$(time_left "$3")" >&2
		points "$@" >"$kept.new"
		[ "$(wc -l <"$kept.new")" -eq $((largest - 1)) ] || {
			echo "$0: a simulation failed" >&2
			exit 1
		}
		mv "$kept.new" "$kept"
		made=$((made + 1))
	fi
	cat "$kept" >>"$out/jitter-$family.csv"
}

# time_left COLUMN: by those made since the beginning
time_left() {
	[ $made = 0 ] ||
		echo "; $(((($(date +%s) - begun) * (columns - $1 + 1) / made + 59) / 60)) min left"
}

begin() {	# FAMILY: its CSV
	echo "x,log2_ranks,runs,butterfly_s,ideal_s,effect,proposed_s,ratio,best_T,again_s,again_ratio" \
		>"$out/jitter-$1.csv"
}

# by_size FAMILY ALPHA PERIOD DURATION FIRST LAST STEP: x is Tcomm / duration, 10^FIRST to
# 10^LAST. Where alpha alone is more than that: 8 bytes.
by_size() {
	begin "$1"
	for e in $(seq "$5" "$7" "$6"); do
		column "$1" "$(power "$e")" $few "$((seed += 1))" "$2" \
			"$(awk -v e="$e" -v a="$2" -v d="$4" 'BEGIN {
				n = int((10 ^ e * d - a) / 1e-9 / 8 + 0.5) * 8
				print (n < 8 ? 8 : n)
			}')" "$3" "$4"
	done
}

# by_duration FAMILY ALPHA PERIOD FIRST LAST STEP: x is duration / period. 1/100 is drawn
# as lines too, and gets more runs.
by_duration() {
	begin "$1"
	for e in $(seq "$4" "$6" "$5"); do
		column "$1" "$(power "$e")" "$([ "$e" = -2 ] || [ "$e" = -2.0 ] && echo $many || echo $few)" \
			"$((seed += 1))" "$2" 8 "$3" \
			"$(awk -v e="$e" -v p="$3" 'BEGIN { printf "%.6g", 10 ^ e * p }')"
	done
}

power() {
	awk -v e="$1" 'BEGIN { printf "%.4g", 10 ^ e }'
}

# pick FIGURE FAMILY COLUMN: what the figure shows, by itself
pick() {
	awk -F, -v OFS=, -v name="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		{ print $1, $2, $at[name] }' "$out/jitter-$2.csv" >"$out/jitter-$1.csv"
}

# map FIGURE FAMILY COLUMN LEAST MOST TITLE X-LABEL: x against ranks, z as colour and number
map() {
	pick "$1" "$2" "$3"
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 640,560 font 'sans,12' background paper
		set output '$out/jitter-$1.svg'
		set datafile separator ','
		set title "Figure $1: $6" noenhanced
		set xlabel '$7'
		set ylabel 'ranks'
		set format x '10^{%g}'
		stats '$out/jitter-$1.csv' skip 1 using (log10(\$1)):2 nooutput
		stats '$out/jitter-$1.csv' skip 1 using 3 name 'Z' nooutput
		step = (STATS_max_x - STATS_min_x) / (STATS_records / (STATS_max_y - STATS_min_y + 1) - 1)
		set xrange [STATS_min_x - step / 2 : STATS_max_x + step / 2]
		set yrange [STATS_min_y - 0.5 : STATS_max_y + 0.5]
		set xtics 1
		set ytics 1
		set format y '2^{%g}'
		set tics out nomirror
		set cbrange [$4:$5]
		unset key
		form(z) = z >= 10 || z == int(z) ? sprintf('%.0f', z) : \
			z < 1 ? sprintf('%.2f', z) : sprintf('%.1f', z)
		most = '$5' eq '*' ? Z_max : real('$5')
		dark = $4 + 0.75 * (most - $4)	# from there on numbers are white
		plot '$out/jitter-$1.csv' skip 1 using (log10(\$1)):2:3 with image pixels, \
			'' skip 1 using (log10(\$1)):2:(form(\$3)):(\$3 > dark ? 0xffffff : 0x1b1f24) \
				with labels font ',9' tc rgb variable
	END
}

# lines FIGURE FAMILY X TITLE: time of both against ranks
lines() {
	awk -F, 'NR == 1 || $1 == x' x="$3" "$out/jitter-$2.csv" >"$out/jitter-$1.csv.new"
	mv "$out/jitter-$1.csv.new" "$out/jitter-$1.csv"
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 700,440 font 'sans,12' background paper
		set output '$out/jitter-$1.svg'
		set datafile separator ','
		set datafile columnheaders
		set title "Figure $1: $4" noenhanced
		set xlabel 'ranks'
		set ylabel 'us'
		set format x '2^{%g}'
		set xtics 1 nomirror
		set ytics nomirror
		set border 3
		set grid ytics lc rgb rule
		set key left top
		set yrange [0:*]
		plot '$out/jitter-$1.csv' using 2:(column('butterfly_s') * 1e6) \
			with linespoints pt 7 ps 0.5 lw 1.6 title 'butterfly', \
		     '' using 2:(column('proposed_s') * 1e6) \
			with linespoints pt 7 ps 0.5 lw 1.6 title 'redundant, the least mean of all T', \
		     '' using 2:(column('again_s') * 1e6) \
			with linespoints pt 6 ps 0.5 lw 1 dt 2 title 'that T with fresh noise', \
		     '' using 2:(column('ideal_s') * 1e6) with lines lc rgb muted title 'no jitter'
	END
}

seed=0 made=0 begun=$(date +%s)
columns=$([ $quick ] && echo 20 || echo 25)
effort=${EFFORT:-1}
few=$(awk -v e="$effort" 'BEGIN { print e / 4 }') many=$((2 * effort))
size_label='Tcomm / duration'
share_label='duration / period'
begin 12
column 12 0.01 $many "$((seed += 1))" 1e-7 8 1e-3 1e-5
lines 12 12 0.01 "alpha 0.1 us, period 1 ms, duration 10 us, 8 bytes"

by_size size-1us 1e-6 1e-3 1e-5 -1 1 0.5
what="alpha 1 us, period 1 ms, duration 10 us"
map 5 size-1us effect 1 "*" "effect of jitter: $what" "$size_label"
map 6 size-1us ratio 0 1 "redundant / butterfly: $what" "$size_label"
map 7 size-1us best_T 0 17 "the best T: $what" "$size_label"

if [ $quick ]; then
	by_size size-0.1us 1e-7 1e-2 1e-4 -3 0 1
else
	by_size size-0.1us 1e-7 1e-2 1e-4 -3 1 0.5
fi
what="alpha 0.1 us, period 10 ms, duration 0.1 ms"
map 8 size-0.1us effect 0 120 "effect of jitter: $what" "$size_label"
map 9 size-0.1us effect 1 5 "the same, from 5 on red: $what" "$size_label"
map 10 size-0.1us ratio 0 1 "redundant / butterfly: $what" "$size_label"
map 11 size-0.1us best_T 0 17 "the best T: $what" "$size_label"

by_duration share-1ms 1e-6 1e-3 -3 -1 0.5
what="alpha 1 us, period 1 ms, 8 bytes"
map 13 share-1ms effect 1 12 "effect of jitter: $what" "$share_label"
map 14 share-1ms effect 1 3 "the same, from 3 on red: $what" "$share_label"
map 15 share-1ms ratio 0 1 "redundant / butterfly: $what" "$share_label"
map 16 share-1ms best_T 0 17 "the best T: $what" "$share_label"
lines 21 share-1ms 0.01 "alpha 1 us, period 1 ms, duration 10 us, 8 bytes"

by_duration share-10ms 1e-6 1e-2 -3 -1 0.5
what="alpha 1 us, period 10 ms, 8 bytes"
map 17 share-10ms effect 0 80 "effect of jitter: $what" "$share_label"
map 18 share-10ms effect 1 5 "the same, from 5 on red: $what" "$share_label"
map 19 share-10ms ratio 0 1 "redundant / butterfly: $what" "$share_label"
map 20 share-10ms best_T 0 17 "the best T: $what" "$share_label"

# ---- two clusters -----------------------------------------------------------------

# clusters FIGURE COLLECTIVE FACTOR SIZES ALGORITHMS TITLE: 32 + 32 nodes, NICs of 1 Gbit/s,
# 10 Gbit/s and 10 ms between; FACTOR x size / time. A byte keeps its sender's and its
# receiver's NIC 8 ns.
clusters() {
	name=clusters-$1-$2
	echo "clusters: $name" >&2
	echo "size,algorithm,seconds,bytes_per_s" >"$out/$name.csv"
	for size in $4; do
		"$coll" sim "$2" --algo "$5" --size "$size" --ranks 64 --clusters 2 \
			--alpha 50us --beta 8ns --nic 8ns --gamma 0.1ns \
			--wan-alpha 10ms --wan-trunk 0.8ns --csv |
			awk -F'"' -v factor="$3" 'NR > 1 {
				split($3, value, ",")
				printf "%d,\"%s\",%.6g,%.6g\n", value[3], $2, value[5], \
					value[3] * factor / value[5]
			}' >>"$out/$name.csv"
	done
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 820,460 font 'sans,12' background paper
		set output '$out/$name.svg'
		set datafile separator ','
		set datafile missing NaN
		set title "Figure $1: $6, simulated" noenhanced
		set xlabel 'bytes'
		set ylabel 'MB/s'
		set logscale x 2
		set format x '2^{%L}'
		set xtics nomirror
		set ytics nomirror
		set border 3
		set grid ytics lc rgb rule
		set yrange [0:*]
		set key outside right noenhanced
		names = '$(awk -F'"' 'NR > 1 && !seen[$2]++ { printf "%s ", $2 }' "$out/$name.csv")'
		plot for [i=1:words(names)] '$out/$name.csv' skip 1 using 1: \
			(strcol(2) eq word(names, i) ? \$4 / 1e6 : NaN) \
			with linespoints lc i pt 7 ps 0.4 title word(names, i)
	END
}

# each NAME: it with each number of links
each() {
	for n in 1 2 4 8 16 32; do
		printf '%s:n=%d,' "$1" $n
	done
}

sizes="16K 64K 256K 1M 4M$([ $quick ] || echo ' 16M 64M')"
clusters 4 bcast 64 "$sizes" "$(each vandegeijn-extended)farfirst,world" "Bcast, M P / T"
clusters 4 allreduce 4096 "$sizes" "$(each rabenseifner-extended)twotier,world" \
	"Allreduce, M P^2 / T"
clusters 5 gather 1 "16K 64K 256K 1M 4M 16M" "$(each rendezvous)direct,world" \
	"Gather, bytes of a process / T"
clusters 5 alltoall 64 "1K 4K 16K 64K 256K 1M" "$(each turns)direct,world" \
	"Alltoall, bytes of a process / T"

# ---- circuits ---------------------------------------------------------------------

echo "circuits" >&2
"$coll" sim circuit --table --csv >"$out/circuits.csv"

# circuits FIGURE ALGORITHM TITLE
circuits() {
	name=circuits-$1-$2
	awk -F, -v OFS=, -v name="$2" 'NR == 1 || $1 == name' "$out/circuits.csv" >"$out/$name.csv"
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 700,440 font 'sans,12' background paper
		set output '$out/$name.svg'
		set datafile separator ','
		set datafile missing NaN
		set title "Figure $1: $3, 32 nodes" noenhanced
		set xlabel 'bytes'
		set ylabel 'ms'
		set logscale x 2
		set logscale y
		set format x '2^{%L}'
		set tics nomirror
		set border 3
		set grid ytics lc rgb rule
		set key outside right noenhanced
		names = 'naive:0 ports:2 ports:3 ports:4 ideal:0'
		titles = "naive '2 ports' '3 ports' '4 ports' ideal"
		plot for [i=1:words(names)] '$out/$name.csv' skip 1 using 2: \
			(strcol(3) . ':' . strcol(4) eq word(names, i) ? \$6 * 1e3 : NaN) \
			with points lc i pt 7 ps 0.5 title word(titles, i), \
		     for [i=1:words(names)] '' skip 1 using 2: \
			(strcol(3) . ':' . strcol(4) eq word(names, i) ? \$5 * 1e3 : NaN) \
			with lines lc i notitle
	END
}

circuits 6 linear "one to all, linear"
circuits 7 ring "allgather, ring"
circuits 8 doubling "allgather, recursive doubling"
circuits 9 binomial "broadcast, binomial tree"

ls "$out"/circuits-*.svg "$out"/jitter-*.svg "$out"/clusters-*.svg
