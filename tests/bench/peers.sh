#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Side by side with the MPIs that Debian packages, over TCP on loopback, in turn
# within each round: prints a table of medians and of ratios to the better MPI.
#
#	tests/bench/peers.sh [ROUNDS [SECONDS_PER_CELL [RANKS ...]]]
#
# Each cell is the median over the rounds of a round's median; a sample is the time from
# an agreed start until the last rank has returned. The range of the single rounds' ratios
# shows the influence of the machine on a cell. An MPI that polls without limit gets yield.so
# preloaded, which only helps it.
set -u
BUILD=${BUILD:-build}
rounds=${1:-5} seconds=${2:-0.3}
[ $# -ge 2 ] && shift 2 || set --
ranks=${*:-2 4 8}
collectives=barrier,bcast,allreduce,alltoall
sizes=8,1024,16384,65536,1048576
patience=${PEER_PATIENCE:-60}	# seconds for MPICH, which may hang when it ends
here=$(dirname "$0")
out=$BUILD/bench
mkdir -p "$out"

build() {
	if ! command -v mpicc.openmpi >/dev/null || ! command -v mpicc.mpich >/dev/null; then
		"$here/../../.ci/deps" openmpi-bin libopenmpi-dev mpich libmpich-dev || exit 1
	fi
	gcc -O2 -Wall -Ilibcoll -Iuapi "$here/peer.c" "$BUILD/libcoll.a" -luring -lnettle -lm \
		-o "$out/peer.coll" &&
		mpicc.openmpi -O2 -DPEER_MPI "$here/peer.c" -o "$out/peer.openmpi" &&
		mpicc.mpich -O2 -DPEER_MPI "$here/peer.c" -o "$out/peer.mpich" &&
		gcc -O2 -fPIC -shared "$here/yield_in_poll.c" -o "$out/yield.so"
}

# One round of one library: appends "library ranks collective bytes median p99 min mean".
# Lines that MPICH prints before a hang are kept.
run() {
	library=$1 p=$2
	case $library in
	coll)
		timeout 300 "$BUILD/coll" run --no-prefix -n "$p" -- \
			"$out/peer.coll" "$seconds" $collectives $sizes
		;;
	openmpi)
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 300 \
			mpirun.openmpi --oversubscribe --bind-to none --mca pml ob1 \
			--mca btl tcp,self -np "$p" \
			"$out/peer.openmpi" "$seconds" $collectives $sizes
		;;
	mpich)
		MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=lo timeout "$patience" \
			mpirun.mpich -genv LD_PRELOAD "$PWD/$out/yield.so" -np "$p" \
			"$out/peer.mpich" "$seconds" $collectives $sizes
		;;
	esac 2>>"$out/errors.txt" | grep -E '^[a-z]+ [0-9]+ ' |
		sed "s/^/$library $p /" >>"$out/peers.txt"
}

table() {
	awk -v csv="$out/peers.csv" '
	# The median of the numbers in list.
	function middle(list, count,	i, j, swap) {
		for (i = 2; i <= count; i++)
			for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
				swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap
			}
		return list[int((count + 1) / 2)]
	}
	function median(cell, library,	i, list) {
		for (i = 1; i <= rounds[cell, library]; i++)
			list[i] = value[cell, library, i]
		return middle(list, rounds[cell, library])
	}
	function better_of(a, b) {
		return a && (!b || a < b) ? a : b
	}
	{
		cell = $2 " " $3 " " $4
		if (!(cell in seen)) { seen[cell] = 1; cells[++n] = cell }
		value[cell, $1, ++rounds[cell, $1]] = $5
	}
	END {
		print "ranks,collective,bytes,coll_us,openmpi_us,mpich_us,ratio,least,greatest" > csv
		print "| ranks | collective | bytes | coll µs | Open MPI µs | MPICH µs |" \
			" coll / better | in single rounds |"
		print "|---|---|---|---|---|---|---|---|"
		for (i = 1; i <= n; i++) {
			cell = cells[i]
			c = median(cell, "coll"); o = median(cell, "openmpi"); m = median(cell, "mpich")
			better = better_of(o, m)
			if (!better)
				continue
			least = greatest = 0
			for (r = 1; r <= rounds[cell, "coll"]; r++) {
				peer = better_of(value[cell, "openmpi", r], value[cell, "mpich", r])
				if (!peer)
					continue
				ratio = value[cell, "coll", r] / peer
				if (!least || ratio < least) least = ratio
				if (ratio > greatest) greatest = ratio
			}
			split(cell, part, " ")
			printf "| %s | %s | %s | %.1f | %.1f | %.1f | %.2f | %.2f … %.2f |\n", part[1], \
				part[2], part[3], c, o, m, c / better, least, greatest
			printf "%s,%s,%s,%s,%s,%s,%.3f,%.3f,%.3f\n", part[1], part[2], part[3], c, o, \
				m, c / better, least, greatest > csv
			cellcount++
			slower += c > better
			always += least > 1
		}
		printf "\n%d cells, %d slower than the better MPI, %d of them in every round\n", \
			cellcount, slower, always
	}' "$out/peers.sorted" | tee "$out/peers.md"
}

build || exit 1
: >"$out/peers.txt"
: >"$out/errors.txt"
round=1
while [ "$round" -le "$rounds" ]; do
	for p in $ranks; do
		for library in coll openmpi mpich; do
			[ -t 2 ] && printf '\rround %s of %s, %s ranks, %-8s' "$round" "$rounds" "$p" \
				"$library" >&2
			run "$library" "$p"
		done
	done
	round=$((round + 1))
done
[ -t 2 ] && printf '\r%60s\r' '' >&2
sort -s -k2n,2 -k3,3 -k4n,4 "$out/peers.txt" >"$out/peers.sorted"
table
