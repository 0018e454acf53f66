#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll wan measures the latency and rate that the network has, and n follows from them.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lab.sh"
export COLL_DEADLINE=20s COLL_CONGESTION=cubic COLL_BUFFER_BYTES=64K
net="-c 3+3 --nic 10M --wan 15M --delay 5ms --port-queue 64K -t 60"

# Without being told who is near whom. Payload is 94.7 % of a full frame. Nothing is faster
# than the wires; how much slower is this machine's affair, unless it is quiet.
measured() {
	for try in 1 2 3; do
		"$COLL" lab $net --no-clusters -- "$COLL" wan >"$work/config" 2>&1 || break
		awk -F' = ' -v most="$(limit 1.2 5)" '
		function off(value, wanted) { return value / wanted > most || value / wanted < 0.8 }
		$1 == "beta" { n++; wrong += off($2 + 0, 845) }
		$1 == "wan_beta" { n++; wrong += off($2 + 0, 563) }
		$1 == "wan_alpha" { n++; wrong += off($2 + 0, 5.2) }
		END { exit n != 3 || wrong }' "$work/config" && return
	done
	cat "$work/config"
	return 1
}
ok "links of 10 Mbit/s and a WAN of 15 Mbit/s, 5 ms are measured" silent measured

# One link does not fill it; two do.
chosen() {	# CONFIG ALGORITHM
	COLL_CONFIG=$1 COLL_EXPLAIN=1 "$COLL" lab $net -- "$COLL" bench allreduce \
		--size 64K --iterations 2 --warmup 0 >"$work/out" 2>&1
	grep -q "in clusters of 3+3 (a link carries .*: $2 " "$work/out" ||
		{ cat "$work/out"; return 1; }
}
printf '%s\n' "alpha = 600us" "beta = 845ns" "wan_beta = 563ns" "wan_alpha = 5.2ms" >"$work/quiet"
ok "... the output is a configuration" silent chosen "$work/config" '[^ ]*'
ok "... from which n is chosen" silent chosen "$work/quiet" 'rabenseifner-extended:[^ ]*n=2'

# The same without a file: measured when the job starts, by all as rank 0 says.
at_start() {
	COLL_WAN=auto COLL_EXPLAIN=1 "$COLL" lab $net -- "$COLL" bench bcast \
		--size 64K --iterations 2 --warmup 0 >"$work/out" 2>&1
	grep -q ' to a link between clusters (.* in flight' "$work/out" ||
		{ cat "$work/out"; return 1; }
}
ok "COLL_WAN=auto measures at the start" silent at_start

alone() {
	! "$COLL" run -n 2 -- "$COLL" wan >"$work/out" 2>&1 && grep -q 'one cluster; valid: a job of two' "$work/out"
}
ok "one cluster has no WAN" silent alone

tap_end
