#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# measure=always between clusters with a delay of 5 ms: messages are late while the job begins, and
# the latency that its calls meet later is found to 30 %, the same on all ranks.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lab.sh"

# Milliseconds of the WAN's latency at the end; the program compares the ranks' costs after each 16 calls.
latency() {
	COLL_MEASURE=always COLL_INJECT=link:periodic:period=32ms,duration=30ms,model=occupancy \
		COLL_DEADLINE=60s "$COLL" lab -c 1+1 --delay 5ms -t 90 -- "$BUILD/tests/multi/costs_follow" 400 \
		>"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; return 1; }
	sed -n 's/^wan_alpha *= \([0-9.]*\)ms .* exchanges before call [0-9]*$/\1/p' "$work/out"
}
# within WHAT UNIT LEAST MOST: what is found. A busy machine forwards late: the best of three tries counts.
within() {
	for try in 1 2 3; do
		found=$($1) || { echo "$found"; return 1; }
		echo "# $1 ${found:-?} $2"
		echo "$found" | awk -v least="$3" -v most="$4" '{ exit !($1 >= least && $1 <= most) }' && return
	done
	sed 's/^/# /' "$work/out"
	return 1
}
ok "the delay is found, whatever the clocks and the start" within latency ms 5 6.5

# Four round trips are over the 20 ms of measuring: a byte takes 80 ns, and its packets' headers.
byte_time() {
	COLL_MEASURE=start COLL_DEADLINE=60s "$COLL" lab -c 1+1 --no-clusters --delay 2ms --nic 100M -t 90 -- \
		"$BUILD/tests/multi/costs" 1 >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; return 1; }
	sed -n 's/.* by alpha .*, beta \([0-9.]*\) ns.*/\1/p' "$work/out" | head -1
}
ok "a byte's time is found where latency takes all the time of measuring" within byte_time ns 50 200

# The start tells it, or else the traffic does. What the core takes to copy a byte is not the wire's time, which stays.
overhead() {
	COLL_MEASURE=always COLL_DEADLINE=60s "$COLL" lab -c 1+1 --no-clusters --delay 1ms --nic 100M -t 90 -- \
		"$BUILD/tests/multi/costs_follow" 700 blocking >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; return 1; }
	gap=$(sed -n 's/^byte_gap *= \([0-9.]*\)ns .*/\1/p' "$work/out")
	awk -v gap="${gap:-0}" 'BEGIN { exit !(gap > 40) }' || { echo "# byte_gap $gap ns"; return; }
	sed -n 's/^overhead *= \([0-9.]*\)us .*/\1/p' "$work/out"
}
ok "a sender's overhead is found where latency hides it, and the wire's gap stays" within overhead us 0.5 200

# Two nodes, network namespaces, with as many ranks each as the machine has CPUs: these share its cores.
shares_cores() {
	COLL_MEASURE=off COLL_DEADLINE=60s "$COLL" lab -c 1+1 --each "$(nproc)" --no-clusters -t 90 -- \
		"$BUILD/tests/multi/costs" 1 >"$work/out" 2>&1 && grep -q '^# crowding  *= 2  *# ranks per core' "$work/out" && return
	sed 's/^/# /' "$work/out"
	return 1
}
ok "ranks of several network namespaces share their machine's cores" shares_cores

# Then what a byte takes them is measured by all at once. All bytes of a node pass 100 Mbit/s: no wire takes less than 80 ns.
shared_bytes() {
	COLL_DEADLINE=60s "$COLL" lab -c 1+1 --each "$((2 * $(nproc)))" --no-clusters --nic 100M -t 90 -- \
		"$BUILD/tests/multi/costs" 1 >"$work/out" 2>&1 || { sed 's/^/# /' "$work/out"; return 1; }
	grep -E '^(node_)?beta' "$work/out" | sed 's/^/# /'
	grep -Eq "^node_beta *= [0-9.]*[np]s *# same node, .*: $((4 * $(nproc))) ranks at once" "$work/out" &&
		awk '/^beta *= [0-9.]*ns/ { sub(/ns/, "", $3); fits = $3 + 0 > 60 && $3 + 0 < 200 } END { exit !fits }' "$work/out"
}
ok "... and exchange at once to measure what a byte takes these, beside a wire whose rate short messages do not tell" shared_bytes
tells_work() {
	COLL_BYTE_WORK=3ns COLL_DEADLINE=60s "$COLL" lab -c 1+1 --each "$(nproc)" --no-clusters -t 90 -- \
		"$BUILD/tests/multi/costs" 1 >"$work/out" 2>&1 &&
		grep -q '^byte_work *= 3ns *# between nodes, cores for a byte: given or assumed' "$work/out" &&
		grep -q ', byte work 3 ns' "$work/out" && return
	sed 's/^/# /' "$work/out"
	return 1
}
ok "... unless an option gives it" tells_work
tap_end
