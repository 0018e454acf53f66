#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Links of high latency and rate: pacing, buffers, congestion control, and the order of
# messages. Paced traffic takes at least its time on any machine. Other traffic is compared
# with that, and measured again on a busy machine.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lab.sh"
export COLL_DEADLINE=30s COLL_CONGESTION=cubic
net="--nic 20M --wan 20M --delay 10ms --port-queue 64K -t 60"

# Milliseconds that this many bytes take across.
took() {	# BYTES
	"$COLL" lab -c 1+1 $net -- "$BUILD/tests/multi/concurrent_collectives" 1 "$1" 1 >"$work/out" 2>&1 ||
		{ cat "$work/out"; return 1; }
	sed -n 's/.*last \([0-9]*\).*/\1/p' "$work/out"
}

# 400 KB at 20 Mbit/s: about 180 ms.
free() {	# MORE_THAN
	for try in 1 2 3 4 5; do
		unhindered=$(took 400000)
		[ "$unhindered" -lt "$1" ] && return
	done
	echo "# $unhindered ms"
	return 1
}

paced() {	# 500 KB/s: 800 ms, of which the first burst takes a little away
	ms=$(COLL_WAN_PACING=500000 took 400000)
	[ "$ms" -gt 650 ] && free "$ms" || { echo "# $ms ms"; return 1; }
}
ok "the rate stays below wan_pacing" silent paced

buffered() {	# the kernel doubles 8K: at most 16 KB each 20 ms
	ms=$(COLL_WAN_BUFFER_BYTES=8K took 400000)
	[ "$ms" -gt 400 ] && free "$ms" || { echo "# $ms ms"; return 1; }
}
ok "wan_buffer_bytes bounds the bytes in flight" silent buffered

# The other side of the WAN is the only link of these two ranks.
congestion() {
	COLL_WAN_CONGESTION=reno "$COLL" lab -c 1+1 $net -- "$COLL" bench bcast --size 1K \
		--iterations 2 >"$work/out" 2>&1 && grep -q 'TCP reno' "$work/out" &&
		"$COLL" lab -c 1+1 $net -- "$COLL" bench bcast --size 1K --iterations 2 \
			>"$work/out" 2>&1 && grep -q 'TCP cubic' "$work/out" ||
		{ cat "$work/out"; return 1; }
}
ok "wan_congestion applies to links between clusters" silent congestion

# Near links have nothing of it.
near() {
	ms=$(COLL_WAN_PACING=100000 COLL_WAN_BUFFER_BYTES=8K "$COLL" lab -c 2 $net -- \
		"$BUILD/tests/multi/concurrent_collectives" 1 400000 1 | sed -n 's/.*last \([0-9]*\).*/\1/p')
	[ "$ms" -lt 3000 ] || { echo "# $ms ms"; return 1; }
}
retried() {
	"$@" || "$@" || "$@" || "$@" || "$@"
}
ok "... and not to near links" silent retried near

# Each rank's block once, whatever the policy and however it is cut.
crosses() {	# POLICY
	COLL_LINK_POLICY=$1 COLL_LINK_CHUNK=8K "$COLL" lab -c 2+2 $net -- "$COLL" bench alltoall \
		--algo direct --size 50000 --iterations 2 --warmup 0 --counters --json \
		>"$work/out" 2>&1
	grep -Eq '"far_bytes": *100000(\.0)?,?$' "$work/out" || { cat "$work/out"; return 1; }
}
every() {
	crosses rr && crosses occupancy && crosses occupancy-hier
}
ok "the fewest bytes cross under every policy" silent every

# Eight of equal size: first come first served, half are done before turns end one.
earlier() {
	for policy in rr occupancy; do
		COLL_LINK_POLICY=$policy "$COLL" lab -c 1+1 $net -- "$BUILD/tests/multi/concurrent_collectives" 8 \
			262144 1 >"$work/$policy" 2>&1 || { cat "$work/$policy"; return 1; }
	done
	rr=$(sed -n 's/.*mean \([0-9]*\).*/\1/p' "$work/rr")
	occupancy=$(sed -n 's/.*mean \([0-9]*\).*/\1/p' "$work/occupancy")
	[ $((occupancy * 100)) -lt $((rr * 95)) ] || { cat "$work/rr" "$work/occupancy"; return 1; }
}
ok "occupancy completes earlier in the mean than rr" silent retried earlier
tap_end
