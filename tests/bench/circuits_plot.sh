#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The results of circuits.sh as a picture, a panel for each collective: measured, model, bound.
# usage: circuits_plot.sh DIRECTORY [CSV]
set -e
palette=$(dirname "$0")/../../tools/common/palette
out=${1:?usage: circuits_plot.sh DIRECTORY [CSV]}
csv=${2:-$out/circuits_run.csv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

column() {	# COLLECTIVE PORTS VARIANT COLUMN
	awk -F, -v c="$1" -v k="$2" -v v="$3" -v n="$4" \
		'$1 == c && $2 == k && $3 == v && $n > 0 { print $5, $n }' "$csv" | sort -n
}
{
	awk -v as=gnuplot -f "$palette.awk" "$palette"
	echo "set terminal svg size 1200,1000 dynamic background paper"
	echo "set output '${csv%.csv}.svg'"
	echo "set multiplot layout 3,3 title 'Collectives over circuits: points measured, lines model, dashed bound'"
	echo "set logscale xy; set grid; set xlabel 'bytes'; set ylabel 'ms'; set key top left font ',8'"
	awk -F, 'NR > 1 && !seen[$1]++ { print $1 }' "$csv" | while read -r what; do
		lines= colour=0
		for variant in 1/naive 2/paper 4/paper 2/best 3/best 4/best; do
			colour=$((colour + 1))
			file=$work/$what.$colour
			column "$what" "${variant%/*}" "${variant#*/}" 6 >"$file.measured"
			[ -s "$file.measured" ] || continue
			column "$what" "${variant%/*}" "${variant#*/}" 8 >"$file.model"
			column "$what" "${variant%/*}" "${variant#*/}" 9 >"$file.bound"
			lines="$lines${lines:+, }'$file.measured' with points pt 7 ps 0.6 lc $colour title '${variant#*/} k=${variant%/*}'"
			[ ! -s "$file.model" ] || lines="$lines, '$file.model' with lines lc $colour notitle"
			[ "$variant" != 4/best ] || [ ! -s "$file.bound" ] ||
				lines="$lines, '$file.bound' with lines dt 2 lc rgb ink title 'bound k=4'"
		done
		echo "set title '$(echo "$what" | tr _ ' ')'"
		echo "plot $lines"
	done
	echo "unset multiplot"
} >"$work/plot"
gnuplot "$work/plot"
