#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Paper 2's experiment, scaled to one machine, on real sockets: two clusters of 8 nodes with NICs of
# 10 Mbit/s, a WAN of 40 Mbit/s and 10 ms. The latency is the paper's. Rates are a hundredth, so that
# forwarding takes a small part of a core, and sizes a sixteenth. The WAN carries as much as 4 NICs,
# so that the best n lies between 1 and 8. The network is measured once, as a user would (coll wan).
# Segments follow from the measurement; or there is one (segment=1G), the paper's form, phase after
# phase. CSV and SVG go to $BUILD/figures. Takes about a quarter of an hour.
#
# usage: BUILD=build tests/bench/wan.sh [bcast|allreduce|gather|alltoall|reduce|allgather|
#        reduce_scatter_block|scatter|dealt ...]
#
# dealt: allreduce with ranks alternating between the clusters, and a WAN that carries as much as 2
# NICs. Then world halves the farthest first, as the paper's does.
set -e
build=${BUILD:-build}
out=$build/figures
mkdir -p "$out"
export COLL_CONGESTION="${COLL_CONGESTION:-cubic}" COLL_DEADLINE=60s COLL_BUFFER_BYTES=64K

lab() {
	"$build/coll" lab -c 8+8 --nic 10M --wan 40M --delay 10ms --port-queue 64K -t 240 -- "$@"
}

bench() {	# COLLECTIVE SIZES ALGORITHMS
	for size in $2; do
		lab "$build/coll" bench "$1" --algo "$3" --size "$size" \
			--iterations "${ITERATIONS:-3}" --warmup 1 --csv
	done | awk 'NR == 1 || !/^collective,/' >"$out/wan-$1.csv"
}

# Of the lab's 8 + 8 nodes those of the first cluster become the even ranks.
deal() {	# PROGRAM ...
	"$build/coll" lab -c 8+8 --no-clusters --nic 10M --wan 20M --delay 10ms \
		--port-queue 64K -t 240 -- sh -c '
		if [ $COLL_RANK -lt 8 ]; then
			COLL_CLUSTER=a COLL_RANK=$((2 * COLL_RANK))
		else
			COLL_CLUSTER=b COLL_RANK=$((2 * (COLL_RANK - 8) + 1))
		fi
		export COLL_CLUSTER COLL_RANK
		exec "$@"' deal "$@"
}

each_n() {	# ALGORITHM [,MORE]
	printf '%s' "$1:n=1$2,$1:n=2$2,$1:n=4$2,$1:n=8$2"
}

lab "$build/coll" wan >"$out/wan.config"
export COLL_CONFIG=$out/wan.config
for what in ${*:-bcast allreduce gather alltoall reduce allgather reduce_scatter_block scatter dealt}; do
	case $what in
	bcast)
		bench bcast "16K 64K 256K 1M" "$(each_n vandegeijn-extended),$(each_n vandegeijn-extended ,segment=1G),farfirst,farfirst:segment=1G,world" ;;
	allreduce)
		bench allreduce "16K 64K 256K 1M" "$(each_n rabenseifner-extended),$(each_n rabenseifner-extended ,segment=1G),twotier,twotier:segment=1G,world" ;;
	gather)
		bench gather "1K 8K 64K 256K" "$(each_n rendezvous),twotier,direct" ;;
	alltoall)
		bench alltoall "128 1K 8K 64K" "$(each_n turns),$(each_n gateways),direct" ;;
	reduce)
		bench reduce "1M" "$(each_n rabenseifner-extended),twotier,world" ;;
	allgather)
		bench allgather "64K" "$(each_n vandegeijn-extended),world" ;;
	reduce_scatter_block)
		bench reduce_scatter_block "64K" "$(each_n rabenseifner-extended),world" ;;
	scatter)
		bench scatter "64K" "$(each_n turns),twotier,direct" ;;
	dealt)
		deal "$build/coll" bench allreduce --size 1M --iterations "${ITERATIONS:-3}" \
			--algo "rabenseifner-extended:n=2,twotier,world" --warmup 1 --csv \
			>"$out/wan_dealt.csv" ;;
	*)
		echo "wan.sh: no experiment '$what'" >&2
		exit 2 ;;
	esac
done
sh "$(dirname "$0")/wan_plot.sh" "$out"
