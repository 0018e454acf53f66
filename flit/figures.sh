#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build flit/figures.sh [--quick]
#
# The thesis' figures 5.3 to 5.20 and 6.3 to 6.16 and its tables 5.2 and 6.2 by the simulator, and
# the comparison with BookSim. CSV and SVG go to $BUILD/figures. Takes about 5 minutes of CPU time.
# --quick: fewer points and seeds, about 1 minute. An interrupted run can be continued: results are
# kept until $BUILD/coll is newer.
set -e
palette=$(dirname "$0")/../tools/common/palette
build=${BUILD:-build}
out=$build/figures
here=$(dirname "$0")
coll=$build/coll
seeds=4 cycles=20000 fine=1
if [ "$1" = --quick ]; then
	seeds=1 cycles=8000 fine=2
elif [ $# -gt 0 ]; then
	echo "usage: $0 [--quick]" >&2
	exit 2
fi
all=rr,occupancy,occupancy-hier,age,occupancy-age
mkdir -p "$out/columns"

# steps FIRST LAST STEP: the same range with fewer points when quick
steps() {
	awk -v a="$1" -v b="$2" -v s="$3" -v f=$fine 'BEGIN { printf "%g:%g:%g", a, b, s * f }'
}

# measure NAME ARGUMENT...: a CSV, made, or kept from before
measure() {
	measured=$1
	kept=$out/columns/flit-$1-seeds-$seeds.csv
	shift
	if [ "$(find "$kept" -newer "$coll" 2>/dev/null)" ]; then
		echo "flit: figure $measured: kept" >&2
	else
		echo "flit: figure $measured" >&2
		"$coll" sim flit --seeds $seeds --no-proof --csv "$@" >"$kept.new"
		mv "$kept.new" "$kept"
	fi
	cp "$kept" "$out/flit-$measured.csv"
}

# draw NAME TITLE X-COLUMN X-LABEL Y-COLUMN Y-LABEL POLICIES DATA [GNUPLOT...]
draw() {
	draw_policies=$(echo "$7" | tr , ' ')
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 760,500 font 'sans,13' background paper
		set output '$out/flit-$1.svg'
		set datafile separator ','
		set datafile missing NaN
		set datafile columnheaders
		set title "$2" noenhanced
		set xlabel '$4'
		set ylabel '$6'
		set key left top noenhanced
		set grid ytics lc rgb rule
		set border 3
		set tics nomirror
		set yrange [0:*]
		$9
		policies = '$draw_policies'
		plot for [i=1:words(policies)] '$8' using \
			(strcol('policy') eq word(policies, i) ? column('$3') : NaN):(column('$5')) \
			with ${style:-linespoints pt 7 ps 0.5} lc i lw 1.6 title word(policies, i)
	END
}

# both NAME-OF-LATENCY NAME-OF-THROUGHPUT TITLE POLICIES ARGUMENT...
both() {
	both_latency=$1 both_throughput=$2 both_title=$3 both_policies=$4
	shift 4
	measure "$both_latency" --policy "$both_policies" --cycles $cycles "$@"
	draw "$both_latency" "Figure $both_latency: $both_title, mean latency" rate \
		'messages a PE and cycle' latency cycles "$both_policies" \
		"$out/flit-$both_latency.csv"
	if [ "$both_throughput" ]; then
		cp "$out/flit-$both_latency.csv" "$out/flit-$both_throughput.csv"
		draw "$both_throughput" "Figure $both_throughput: $both_title, throughput" rate \
			'messages a PE and cycle' throughput 'flits a cycle' "$both_policies" \
			"$out/flit-$both_throughput.csv" "set key right bottom"
	fi
}

# program NAME-OF-LATENCY NAME-OF-TIME TITLE X-COLUMN X-LABEL POLICIES ARGUMENT...
program() {
	program_latency=$1 program_time=$2 program_title=$3 program_x=$4 program_label=$5
	program_policies=$6
	shift 6
	measure "$program_latency" --policy "$program_policies" --jitter 30 "$@"
	cp "$out/flit-$program_latency.csv" "$out/flit-$program_time.csv"
	draw "$program_latency" "Figure $program_latency: $program_title, mean time of a message" \
		"$program_x" "$program_label" latency cycles "$program_policies" \
		"$out/flit-$program_latency.csv"
	program_list=$(echo "$program_policies" | tr , ' ')
	gnuplot <<-END
		$(awk -v as=gnuplot -f "$palette.awk" "$palette")
		set terminal svg size 760,500 font 'sans,13' background paper
		set output '$out/flit-$program_time.svg'
		set datafile separator ','
		set datafile missing NaN
		set datafile columnheaders
		set title "Figure $program_time: $program_title, when PEs finish (mean, first, last)" noenhanced
		set xlabel '$program_label'
		set ylabel 'cycles'
		set key left top noenhanced
		set grid ytics lc rgb rule
		set border 3
		set tics nomirror
		policies = '$program_list'
		plot for [i=1:words(policies)] '$out/flit-$program_time.csv' using \
			(strcol('policy') eq word(policies, i) ? \
			 column('$program_x') * (1 + 0.012 * (i - 1)) : NaN): \
			(column('finish_mean')):(column('finish_first')):(column('finish_last')) \
			with yerrorlines lc i lw 1.4 pt 7 ps 0.5 title word(policies, i)
	END
}

# series FIRST-NUMBER COLUMN TITLE LABEL DATA
series() {
	style=lines draw "$1" "Figure $1: $3" cycle cycle "$2" "$4" rr,occupancy "$5" \
		"set key right bottom"
}

# ---- 5: the mesh of 16 x 16 --------------------------------------------------

mesh="--net mesh:16x16"
for length in 16 32 64; do
	case $length in
	16) both 5.3 5.4 "mesh, length 16" rr,occupancy,occupancy-age $mesh --length 16 \
		--rate "$(steps 0.001 0.01 0.001)" ;;
	32) both 5.5 5.6 "mesh, length 32" rr,occupancy,occupancy-age $mesh --length 32 \
		--rate "$(steps 0.0005 0.006 0.0005)" ;;
	64) both 5.7 5.8 "mesh, length 64" rr,occupancy,occupancy-age $mesh --length 64 \
		--rate "$(steps 0.00025 0.003 0.00025)" ;;
	esac
done
# Dimension order, vertical first: all that goes to row 0 meets in it. Here x is first, so
# the targets are column 0; the other order, where nothing meets, is 5.9-row.
both 5.9 "" "mesh, 16 targets in a line, length 16" rr,occupancy,occupancy-age $mesh \
	--traffic hotspot --hot-step 16 --rate "$(steps 0.0001 0.0012 0.0001)"
both 5.9-row "" "mesh, 16 targets, a line across the last dimension" rr,occupancy,occupancy-age \
	$mesh --traffic hotspot --rate "$(steps 0.0001 0.0012 0.0001)"
mesh_series=$out/columns/flit-5.10-series-$seeds.csv
measure 5.10 $mesh --rate 0.008 --cycles $cycles --interval 200 --series "$mesh_series"
for figure in 5.12 5.13 5.14; do
	cp "$mesh_series" "$out/flit-$figure.csv"
done
cp "$out/flit-5.10.csv" "$out/flit-table-5.2.csv"
cp "$mesh_series" "$out/flit-5.10.csv"
series 5.10 use "mesh, length 16, rate 8.0e-3: links in use" '%' "$out/flit-5.10.csv"
series 5.12 none "links that are idle: no packet" 'of 960 links' "$out/flit-5.12.csv"
series 5.13 gap "links that are idle: gap between flits" 'of 960 links' "$out/flit-5.13.csv"
series 5.14 blocked "links that are idle: blocked ahead" 'of 960 links' "$out/flit-5.14.csv"
program 5.16 5.17 "FFT on the mesh" data 'data of a PE' rr,occupancy,occupancy-age $mesh \
	--traffic fft --data 1,2,4,6,8
both 5.19 5.20 "mesh, north-last, length 16" rr,occupancy,occupancy-age $mesh \
	--routing north-last --rate "$(steps 0.001 0.01 0.001)"

# ---- 6: TESH(2,2,0) ------------------------------------------------------------

tesh="--net tesh:2,2,0"
both 6.3 6.4 "TESH(2,2,0), length 16" $all $tesh --rate "$(steps 0.0002 0.0016 0.0001)"
both 6.3-adaptive 6.4-adaptive "TESH(2,2,0), adaptive routing" $all $tesh --routing adaptive \
	--rate "$(steps 0.0002 0.0016 0.0001)"
tesh_series=$out/columns/flit-6.5-series-$seeds.csv
measure 6.5 $tesh --rate 0.001 --cycles $cycles --interval 200 --series "$tesh_series"
for figure in 6.6 6.7 6.8; do
	cp "$tesh_series" "$out/flit-$figure.csv"
done
cp "$out/flit-6.5.csv" "$out/flit-table-6.2.csv"
cp "$tesh_series" "$out/flit-6.5.csv"
series 6.5 outer_use "TESH(2,2,0), length 16, rate 1.0e-3: links between modules in use" '%' \
	"$out/flit-6.5.csv"
series 6.6 outer_none "links between modules that are idle: no packet" 'of 32 links' "$out/flit-6.6.csv"
series 6.7 outer_gap "links between modules that are idle: gap between flits" 'of 32 links' \
	"$out/flit-6.7.csv"
series 6.8 outer_blocked "links between modules that are idle: blocked ahead" 'of 32 links' \
	"$out/flit-6.8.csv"

# distribution NAME CHANNELS RATE
distribution() {
	echo "flit: figure $1" >&2
	"$coll" sim flit $tesh --vcs "$2" --rate "$3" --policy $all --cycles $cycles --seeds 1 \
		--no-proof --csv --distribution "$out/flit-$1.csv" >"$out/flit-$1-summary.csv"
	style=steps draw "$1" "Figure $1: TESH(2,2,0), latencies, $2 channels, rate $3" latency \
		'cycles' messages 'messages in 10 cycles' $all "$out/flit-$1.csv" \
		"set key right top; set xrange [0:500]"
}
distribution 6.9 4 0.001
distribution 6.10 8 0.001
distribution 6.11 8 0.0012
program 6.12 6.13 "FFT on TESH(2,2,0)" data 'data of a PE' $all $tesh --traffic fft --data 1,2,4,6,8
program 6.15 6.16 "four directions on TESH(2,2,0), length 64" rounds steps $all $tesh \
	--traffic four --length 64 --rounds 5,10,15,20

# ---- BookSim ---------------------------------------------------------------------

measure booksim --machine booksim --policy rr,hold --warmup 6000 --cycles 12000 \
	--rate 0.000625,0.0025,0.005,0.0075,0.01,0.0125,0.015,0.01875
awk -F, -v OFS=, -v ours="$out/flit-booksim.csv" '
	FILENAME == ours && FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	FILENAME == ours {
		key = $1 sprintf(",%.2f", $2 * 16)
		latency[key] = $at["latency"]; accepted[key] = $at["accepted"]
		next
	}
	/^#/ { next }
	/^hold,offered/ { print "policy,offered,booksim_latency,latency,booksim_accepted,accepted"; next }
	{ print $1, $2, $3, latency[$1 "," $2], $4, accepted[$1 "," $2] }
' "$out/flit-booksim.csv" "$here/booksim.csv" >"$out/flit-booksim-compared.csv"
gnuplot <<-END
	$(awk -v as=gnuplot -f "$palette.awk" "$palette")
	set terminal svg size 760,500 font 'sans,13' background paper
	set output '$out/flit-booksim.svg'
	set datafile separator ','
	set datafile columnheaders
	set title "16 x 16 mesh, 4 channels of 8 flits, packets of 16: BookSim and this"
	set xlabel 'offered, flits a PE and cycle'
	set ylabel 'mean latency, cycles'
	set key left top
	set xrange [0:0.18]
	set yrange [0:*]
	plot for [p in 'rr hold'] '$out/flit-booksim-compared.csv' using \
		(strcol('policy') eq p ? column('offered') : NaN):(column('latency')) \
		with lines lw 1.6 title p, \
	     for [p in 'rr hold'] '' using \
		(strcol('policy') eq p ? column('offered') : NaN):(column('booksim_latency')) \
		with points pt 6 title 'BookSim, '.p
END

# ---- tables 5.2 and 6.2 beside the thesis' -----------------------------------------

# row TABLE PREFIX DATA
rows() {
	awk -F, -v table="$1" -v prefix="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{
			use = prefix == "outer_" ? "outer_use" : "use"
			idle = prefix == "outer_" ? "outer_" : "idle_"
			printf "%s,%s,%.2f,%.2f,%.2f,%.2f\n", table, $1, $at[use], \
				$at[idle "none"], $at[idle "gap"], $at[idle "blocked"]
		}' "$3"
}
{
	echo "table,policy,use_percent,no_packet,gap,blocked"
	echo "5.2 thesis,rr,36.66,125.28,153.27,352.67"
	echo "5.2 thesis,occupancy,39.84,125.48,124.07,311.17"
	rows 5.2 "" "$out/flit-table-5.2.csv"
	echo "6.2 thesis,rr,46.25,2.20,6.38,9.26"
	echo "6.2 thesis,occupancy,52.45,2.64,4.42,6.40"
	rows 6.2 outer_ "$out/flit-table-6.2.csv"
} >"$out/flit-tables.csv"
column -s, -t "$out/flit-tables.csv" 2>/dev/null || cat "$out/flit-tables.csv"
column -s, -t "$out/flit-booksim-compared.csv" 2>/dev/null || cat "$out/flit-booksim-compared.csv"
ls "$out"/flit-*.svg
