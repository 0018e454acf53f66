#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The cost of the choice of algorithms: each collective with the chosen algorithm and with every
# other one, in turn in the same run, on this machine.
#
#	tests/bench/algorithm_choice.sh [SECONDS_PER_SIZE [RANKS ...]]
#
# Each line: the medians of the chosen and of the best algorithm, their ratio, and the name of the
# best. The best of many noisy medians is biased low.
set -u
BUILD=${BUILD:-build}
seconds=${1:-2}
[ $# -ge 1 ] && shift
ranks=${*:-2 4 8}
sizes=8,1K,16K,64K,1M
out=$BUILD/bench
mkdir -p "$out"

# Those of one node without circuits; what differs by an option has its usual value.
algorithms() {	# COLLECTIVE
	"$BUILD/coll" verify --list | awk -v collective="$1" '
		$1 == collective && $2 !~ /^(world|direct|farfirst|twotier|gateways|turns|rings|debruijn|rendezvous|lanes|leader|.*-extended|.*-relayed)$/ {
			list = list "," $2 }
		END { print "auto" list }'
}

for p in $ranks; do
	for collective in barrier bcast reduce allreduce allgather alltoall gather scatter \
		reduce_scatter_block scan; do
		[ $collective = barrier ] && sized="" || sized="--size $sizes"
		[ -t 2 ] && printf '\r%-60s' "$p ranks: $collective" >&2
		"$BUILD/coll" bench $collective -n "$p" $sized --time "$seconds" --start clock \
			--algo "$(algorithms $collective)" --csv 2>>"$out/errors.txt" | tail -n +2
	done
done | sed 's/"[^"]*",//' >"$out/choice.csv"
[ -t 2 ] && printf '\r%60s\r' "" >&2

# collective,ranks,engine,size,algorithm,iterations,wrong,mean,p50,...
awk -F, '
{
	cell = $1 " " $2 " " $4
	gsub(/"/, "", $5)
	if ($5 == "auto") {
		order[++cells] = cell
		auto[cell] = $9
	} else if (!(cell in best) || $9 < best[cell]) {
		best[cell] = $9
		name[cell] = $5
	}
}
END {
	print "| collective | ranks | bytes | chosen µs | best µs | chosen / best | the best |"
	print "|---|---|---|---|---|---|---|"
	for (i = 1; i <= cells; i++) {
		cell = order[i]
		split(cell, part, " ")
		ratio = auto[cell] / best[cell]
		sum += log(ratio)
		worse += ratio > 1.25
		printf "| %s | %d | %d | %.1f | %.1f | %.2f | %s |\n", part[1], part[2], part[3],
			auto[cell], best[cell], ratio, name[cell]
	}
	if (cells)
		printf "\n%d cells: %.2f times the best in the geometric mean, %d over 1.25\n",
			cells, exp(sum / cells), worse
	exit !cells
}' "$out/choice.csv"
