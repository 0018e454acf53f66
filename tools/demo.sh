#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# make demo: the cost of noise in an allreduce of 8 ranks that are processes, and the gain of
# redundant exchanges; then a job whose noise changes (demo_changing.sh), and what its report says. Takes about two
# minutes. DEMO_SECONDS: for each of the nine cells (3 sizes x 3 kinds of noise). DEMO_PHASE: seconds
# of each of the four phases.
set -e
build=${BUILD:-build}
out=$build/demo
seconds=${DEMO_SECONDS:-6}
ranks=${DEMO_RANKS:-8}
algos=butterfly,butterfly-redundant:T=1,butterfly-redundant:T=2,butterfly-redundant:T=3
algos=$algos,rabenseifner,ring
os=os:periodic:period=10ms,duration=1ms
link=link:poisson:rate=100,duration=2ms
mkdir -p "$out"

echo "Allreduce of doubles (sum): $ranks ranks, processes on the $(nproc) cores of this machine, through memory that they share."
echo "Six algorithms alternate, so all meet the same machine; every result is checked."
echo

measure() {	# NAME SPEC WHAT
	echo "measuring with $3 ..."
	"$build/coll" bench allreduce -n "$ranks" --algo "$algos" --size 8,8K,1M --warmup 3 \
		--time "$seconds" --inject "$2" --csv >"$out/$1.csv"
}

measure none off "no noise"
measure os "$os" "OS noise: each rank pauses for 1 ms in every 10 ms, at its own phase"
measure link "$link" "link noise: 100 times a second a link delays its messages by 2 ms"

# One file: noise,size,algorithm,iterations,mean,p50,p90,p99,p99.9,max,min
{
	echo "noise,size,algorithm,iterations,mean_us,p50_us,p90_us,p99_us,p999_us,max_us,min_us"
	for noise in none os link; do
		sed -e 1d -e 's/"[^"]*",//' -e 's/"//g' "$out/$noise.csv" |
			awk -F, -v OFS=, -v noise=$noise \
				'{ print noise, $4, $5, $6, $8, $9, $10, $11, $12, $13, $14 }'
		rm "$out/$noise.csv"
	done
} >"$out/allreduce.csv"

bold= plain=
if [ -t 1 ]; then
	bold=$(printf '\033[1;32m') plain=$(printf '\033[0m')
fi
echo
awk -F, -v bold="$bold" -v plain="$plain" -f tools/demo_table.awk "$out/allreduce.csv"

# picture NAME: of the script $out/NAME.gp.
picture() {
	for kind in svg png; do
		if ! gnuplot -e "kind='$kind'; file='$out/$1.$kind'" "$out/$1.gp" 2>"$out/gnuplot.err"; then
			echo "no $kind: $(head -1 "$out/gnuplot.err")"
			rm -f "$out/$1.$kind"
		fi
	done
	rm -f "$out/gnuplot.err"
}

awk -F, -v ranks="$ranks" -f tools/demo_plot.awk "$out/allreduce.csv" >"$out/allreduce.gp"
picture allreduce
echo
echo "Data and picture: $(ls "$out"/allreduce.* | tr '\n' ' ')"

# ---- a job whose noise changes -------------------------------------------------

echo
tools/demo_changing.sh "$out"
picture changing
echo "Data and picture: $(ls "$out"/changing.* | tr '\n' ' ')"
