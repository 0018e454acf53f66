#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Every collective with clusters, and the ways to describe the clusters.
build=${BUILD:-build}
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

export COLL_DEADLINE=30s COLL_EXPLAIN=1

every=10
[ -z "$COLL_TEST_LITTLE" ] || every=60
every() {	# RANKS ENGINE
	COLL_EXPLAIN=0 COLL_ENGINE=$2 "$build/coll" run -t 100 -n "$1" -- \
		"$build/tests/multi/every_collective" "$every" 1
}

runs() {
	COLL_CLUSTERS=4+3 every 7 uring && COLL_CLUSTERS=1+2+2 every 5 epoll
}
ok "every collective is right in clusters that are runs of ranks" quiet runs

dealt() {
	printf '# who\t\twhere\n0 east\n2 east\n4 east\n5-6 west\n1 west # here too\n3 west\n' \
		>"$work/clusters"
	COLL_CLUSTERS=$work/clusters every 7 epoll && COLL_CLUSTERS=$work/clusters every 7 uring
}
ok "... and in others, from a file" quiet dealt

bench() {	# RANKS: what a call says of itself
	"$build/coll" bench allreduce -n "$1" --size 64K --iterations 3 --warmup 0 \
		>"$work/out" 2>&1
}

said() {
	grep -q -e "$1" "$work/out"
}

lanes() {
	COLL_CLUSTERS=4+2 COLL_BETA=400ns COLL_WAN_BETA=150ns COLL_WAN_LOSS=0.1 \
		COLL_WAN_ALPHA=10ms bench 6 &&
		said 'in clusters of 4+2 (a link carries 2.5 MB/s, the WAN 6.67, overload costs 0.1)' &&
		said 'rabenseifner-extended:segment=[0-9]*,n=2 (least predicted' || { cat "$work/out"; false; }
}
ok "n is chosen by the WAN's bandwidth, and explained" silent lanes

# Together the ranks send across what must cross, and no byte more.
crosses() {	# COLLECTIVE ALGORITHM BYTES_OF_ALL
	COLL_EXPLAIN=0 COLL_CLUSTERS=4+3 "$build/coll" bench "$1" --algo "$2" -n 7 --size 70000 \
		--iterations 2 --warmup 0 --counters --json >"$work/out" 2>&1
	sed -n 's/.*"far_bytes": *\([0-9.e+]*\).*/\1/p' "$work/out" |
		awk -v all="$3" '{ got = $1 * 7 } END { exit !(got > all - 1 && got < all + 1) }' ||
		{ cat "$work/out"; return 1; }
}
fewest() {
	crosses bcast vandegeijn-extended:n=2 70000 && crosses bcast farfirst 70000 &&
		crosses allreduce rabenseifner-extended:n=3 140000 &&
		crosses allreduce twotier 140000 &&
		crosses allgather vandegeijn-extended:n=3 $((7 * 70000)) &&
		crosses alltoall gateways:n=2 $((2 * 4 * 3 * 70000)) &&
		crosses alltoall turns:n=2 $((2 * 4 * 3 * 70000))
}
ok "the fewest bytes cross, once" silent fewest

names() {
	COLL_ALLREDUCE=twotier "$build/coll" run -n 3 -- sh -c \
		'COLL_CLUSTER=$((COLL_RANK / 2)) exec "$0" bench allreduce --iterations 3' \
		"$build/coll" >"$work/out" 2>&1 && said 'in clusters of 2+1 ' || { cat "$work/out"; false; }
}
ok "each rank may name its cluster" silent names

measured() {
	COLL_CLUSTERS=auto bench 4 && ! said 'in clusters of' || { cat "$work/out"; false; }
}
ok "measured clusters: the ranks of one host are near each other" silent measured

wrong() {
	! COLL_CLUSTERS=4+3 bench 6 &&
		said "'4+3' is not the sizes of clusters, like 8+8, of 6 ranks together" &&
		! COLL_CLUSTERS=4,3 bench 6 && said 'option clusters: .* is not off, sizes' &&
		! COLL_CLUSTERS=$work/none bench 2 && said 'No such file' &&
		echo '0 here' >"$work/clusters" && ! COLL_CLUSTERS=$work/clusters bench 2 &&
		said 'rank 1 is in no cluster'
}
ok "wrong clusters are errors in words" silent wrong

tap_end
