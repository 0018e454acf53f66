#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Several alltoalls and allreduces in flight over one link between clusters, for each link policy:
# the mean time to completion, and that of the last. The lab's link has 20 Mbit/s and 10 ms. Rounds of
# 2, 4 and 8 collectives of equal sizes (512 KB) and of mixed ones (64, 1024, 256, 704 KB: the same
# sum): in one group; each in its own group, with its own connection; and the same on hosts that keep
# idle connections fast ("kept": coll lab --warm). CSV and SVG go to $BUILD/figures. Takes five minutes.
#
# usage: BUILD=build tests/bench/concurrent_collectives.sh [one|own|kept ...]
set -e
palette=$(dirname "$0")/../../tools/common/palette
build=${BUILD:-build}
out=$build/figures
csv=$out/flights.csv
mkdir -p "$out"
export COLL_CONGESTION="${COLL_CONGESTION:-cubic}" COLL_DEADLINE=60s

[ -s "$csv" ] || echo "policy,connections,sizes,in_flight,mean_ms,last_ms" >"$csv"
for connections in ${*:-one own kept}; do
	groups=groups warm=
	case $connections in
	one) groups= ;;
	kept) warm=--warm ;;
	esac
	sed -i "/,$connections,/d" "$csv"	# what was measured before of the others stays
	for sizes in equal mixed; do
		case $sizes in
		equal) bytes=524288 ;;
		mixed) bytes=65536,1048576,262144,720896 ;;
		esac
		for flights in 2 4 8; do
			for policy in rr occupancy occupancy-hier; do
				COLL_LINK_POLICY=$policy "$build/coll" lab -c 1+1 --nic 20M --wan 20M \
					--delay 10ms --port-queue 64K $warm -t 60 -- \
					"$build/tests/multi/concurrent_collectives" $flights $bytes "${ROUNDS:-3}" mixed $groups |
					sed -n "s/.*mean \([0-9.]*\) ms last \([0-9.]*\) ms.*/$policy,$connections,$sizes,$flights,\1,\2/p" >>"$csv"
			done
		done
	done
done

# Bars: one per policy, in groups by the number in flight.
panel() {	# CONNECTIONS SIZES COLUMN
	awk -F, -v connections="$1" -v sizes="$2" -v column="$3" '
	$2 == connections && $3 == sizes { v[$4, $1] = $column }
	END { for (n = 2; n <= 8; n *= 2)
		print n, v[n, "rr"], v[n, "occupancy"], v[n, "occupancy-hier"] }' "$csv"
}
for sizes in equal mixed; do
	for connections in one own kept; do
		panel $connections $sizes 5 >"$out/flights.$sizes.$connections"
	done
done
gnuplot <<END
$(awk -v as=gnuplot -f "$palette.awk" "$palette")
set terminal svg size 820,780 dynamic background paper
set output "$out/flights.svg"
set multiplot layout 3,2 title "In flight over a link of 20 Mbit/s and 10 ms: mean time to completion"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.7
set yrange [0:]
set ylabel "ms"
set xlabel "collectives in flight"
set key top left
set grid ytics
do for [c in "one own kept"] {
	do for [s in "equal mixed"] {
		set title s." sizes, ".(c eq "one" ? "one connection" : "a connection each".(c eq "kept" ? ", kept fast" : ""))
		plot for [i=2:3] "$out/flights.".s.".".c using i:xtic(1) title (i == 2 ? "rr" : "occupancy")
	}
}
END
rm -f "$out"/flights.*.one "$out"/flights.*.own "$out"/flights.*.kept
cat "$csv"
