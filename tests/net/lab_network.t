#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll lab: its WAN has the requested rate, delay and loss, jobs run in it, and nothing of it
# remains afterwards.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lab.sh"

# Frames are not earlier or faster than requested, and frames that find the queue full are
# dropped. How much later and slower they may be depends on the machine, unless it is quiet:
# then the best of three tries is within 0.2 ms, 3 % and 15 % of the queue.
calibrated() {	# WAN DELAY
	for try in 1 2 3; do
		"$COLL" lab -c 1+1 --wan "$1" --delay "$2" --calibrate --json >"$work/out" || return 1
		jq -e --argjson late "$(limit 0.0002 10)" --argjson slow "$(limit 0.03 0.9)" \
			--argjson waits "$(limit 0.15 10)" '
			(.delay.median - .delay.asked) as $later |
			(1 - .rate.measured / .rate.asked) as $slower |
			(.queue.measured / .queue.asked - 1) as $longer |
			$later >= -0.0002 and $later <= $late and $slower >= -0.03 and
			$slower <= $slow and $longer >= -0.15 and $longer <= $waits and
			.lost > 0.1' "$work/out" >/dev/null && return
	done
	cat "$work/out"
	return 1
}
ok "a WAN of 50 Mbit/s, 10 ms has this rate and delay, and a queue that drops" silent calibrated 50M 10ms
ok "a WAN of 20 Mbit/s, 40 ms has this rate and delay" silent calibrated 20M 40ms

# Pauses of more than a second are among the first packets of it.
far() {
	"$COLL" lab -c 1+1 --delay 300ms --calibrate --json >"$work/out" &&
		jq -e --argjson late "$(limit 0.0005 0.1)" '.delay.median >= 0.2998 and
			.delay.median <= 0.3 + $late' "$work/out" >/dev/null && return
	cat "$work/out"
	return 1
}
ok "a delay of 300 ms is measured as such" silent far

runs() {	# OPTION ...
	COLL_DEADLINE=20s quiet "$COLL" lab -t 40 "$@" -- "$COLL" bench allreduce --size 64K \
		--iterations 5
}
ok "a job runs in two clusters" runs -c 2+3 --nic 20M --wan 50M --delay 2ms
ok "... in three clusters" runs -c 2+1+2 --delay 2ms
ok "... with IPv6 only" runs -c 2+2 --ipv6 --delay 2ms
ok "... over a WAN that loses packets" runs -c 2+2 --loss 0.01 --delay 2ms

rails() {
	COLL_DEADLINE=20s "$COLL" lab -t 40 -c 2+2 --rails 2 --delay 1ms -- sh -c '
		"$0" bench allreduce:ring --size 1M --iterations 10 >/dev/null 2>&1
		"$0" bench alltoall --size 64K --iterations 10 >/dev/null || exit 1
		for rail in rail0 rail1; do
			[ "$(cat /sys/class/net/$rail/statistics/tx_bytes)" -gt 50000 ] && echo $rail
		done' "$COLL" >"$work/out" 2>&1
	[ "$(grep -c rail0 "$work/out")" -ge 1 ] && [ "$(grep -c rail1 "$work/out")" -ge 1 ]
}
ok "links use both rails" silent rails
ok "240 nodes with 3 rails start" silent "$COLL" lab -c 120+120 --rails 3 --nic 100M -t 100 -- true

# The lab's descriptors of its nodes pass the numbers that nodes and colld give to namespaces.
inherited() {
	"$COLL" lab -c 250 -t 100 -- true 3</dev/null && "$COLL" lab -c 250 -t 100 -- true
}
ok "250 nodes start, with a descriptor more as well" silent inherited
ports() {
	for nodes in 22 23 24 25 26; do
		"$COLL" lab -c $nodes --circuits 1 -t 100 -- true || return 1
	done
	"$COLL" lab -c 2 --rails 2 --circuits 2 -t 100 -- sh -c 'ip link show rail1 && ip link show port1' >/dev/null
}
ok "nodes have optical ports, beside rails too" silent ports

# Its queue is longer than the longest packet that TCP hands over.
fast() {
	COLL_DEADLINE=20s "$COLL" lab -t 40 -c 1+1 --nic 1G --wan 1G --delay 1ms -- "$COLL" bench bcast \
		--size 4M --iterations 3
}
ok "long messages pass a fast NIC" quiet fast

# Ranks by node: the k-th node has the ranks k N to k N + N - 1, and an address of its own.
each() {
	"$COLL" lab -c 1+2 --each 3 --delay 1ms -t 40 -- sh -c '
		echo "$COLL_RANK/$COLL_RANKS $COLL_LOCAL_RANK/$COLL_LOCAL_RANKS $COLL_CLUSTERS" \
			"$(ip -o -4 addr show rail0 | sed "s/.*inet //; s/ .*//")"' >"$work/out" || return 1
	for rank in 0 1 2 3 4 5 6 7 8; do
		node=$((rank / 3))
		echo "$rank/9 $((rank % 3))/3 3+6 10.77.$(((node + 1) / 2)).$((node == 2 ? 2 : 1))/16"
	done >"$work/expected"
	sort -n "$work/out" | cmp - "$work/expected"
}
ok "--each: a node has so many ranks" silent each
levels() {
	COLL_EXPLAIN=1 COLL_DEADLINE=20s "$COLL" lab -t 40 -c 1+1 --each 2 --no-clusters --delay 1ms -- \
		"$COLL" bench allreduce --size 64K --iterations 5 >"$work/out" 2>&1 &&
		grep -q "4 ranks on 2 nodes of 2" "$work/out" && return
	sed 's/^/# /' "$work/out"
	return 1
}
ok "... which make a level" levels

codes() {
	"$COLL" lab -c 1+1 -- sh -c 'exit $((COLL_RANK * 7))'
	[ $? = 7 ] || return 1
	"$COLL" lab -c 1+1 -t 0.5 -- sleep 30 2>/dev/null
	[ $? = 124 ] || return 1
	"$COLL" lab -c 1+1 --each 2 -- sh -c 'exit $((COLL_RANK == 2 ? 5 : 0))'
	[ $? = 5 ] || return 1
	"$COLL" lab --each 0 -- true 2>"$work/why"
	[ $? = 2 ] && grep -q -- '--each' "$work/why" || return 1
	"$COLL" lab -c 1+x -- true 2>"$work/why"
	[ $? = 2 ] && grep -q 'valid: up to 8 sizes like 8+8' "$work/why" || return 1
	for down in 2@1s -1@1s 4294967295@1s 1x@1s ' 1@1s' @1s; do
		"$COLL" lab -c 1+1 --down="$down" -- true 2>"$work/why"
		[ $? = 2 ] && grep -q -- '--down' "$work/why" || return 1
	done
	"$COLL" lab -c 2 --down wan@1s -- true 2>"$work/why"
	[ $? = 2 ] && grep -q 'no WAN' "$work/why" || return 1
	"$COLL" lab -c 1+1 --nic '1 ' -- true 2>"$work/why"
	[ $? = 2 ] && grep -q -- '--nic' "$work/why"
}
ok "exit codes are the program's" silent codes

# All of a lab's processes are in a PID namespace of its own.
sleepers() {
	ps -eo args | grep -c "^sleep 60[.]$$"
}
gone() {	# SIGNAL
	"$COLL" lab -c 1+1 --each 2 -- sleep 60.$$ &
	lab=$!
	for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(sleepers)" = 4 ] && break
		sleep 0.5
	done
	[ "$(sleepers)" = 4 ] || return 1
	kill "-$1" $lab
	wait $lab 2>/dev/null
	sleep 0.5
	[ "$(sleepers)" = 0 ] && ! ip link | grep -Eq ' (s|p|w|x)[0-9]'
}
ok "after the end nothing is left" quiet gone TERM
ok "... by SIGQUIT as well" quiet gone QUIT
ok "after a kill nothing is left" quiet gone KILL
calibration_ends() {
	timeout --foreground --preserve-status -k 20 1 "$COLL" lab -c 1+1 --delay 60s --calibrate
	[ $? = 143 ]
}
ok "a calibration ends with a signal" quiet calibration_ends
full_disk() {
	"$COLL" lab -c 1+1 --delay 1ms --calibrate 2>"$work/why" >/dev/full
	[ $? = 1 ] && grep -q "cannot write standard output" "$work/why"
}
ok "... and with an error if its result cannot be written" silent full_disk

tap_end
