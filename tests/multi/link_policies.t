#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Link policies: with each of them every collective's result is right, and messages leave in
# the promised order.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

export COLL_DEADLINE=30s COLL_CLUSTERS=2+2

run() {		# PROGRAM ARGUMENT ...
	"$COLL" run -t 100 -n 4 -- "$BUILD/tests/multi/$@" >"$work/out" 2>&1 ||
		{ cat "$work/out"; return 1; }
}

value() {	# NAME
	sed -n "s/.*\b$1 \([0-9.]*\).*/\1/p" "$work/out"
}

# With chunks so short that all is cut; in the second place with short reads and writes.
every() {	# POLICY ENGINE INJECTED
	COLL_LINK_POLICY=$1 COLL_ENGINE=$2 COLL_LINK_CHUNK=8K COLL_INJECT=$3 run groups &&
		COLL_LINK_POLICY=$1 COLL_ENGINE=$2 COLL_LINK_CHUNK=4K COLL_INJECT=$3 \
			run every_collective 30 1
}
for policy in rr occupancy occupancy-hier; do
	ok "$policy: groups and every collective are right, uring" silent every $policy uring off
	ok "$policy: ... with epoll, short reads and writes" \
		silent every $policy epoll short:probability=0.2
done

# Bytes a second: a link slower than its ranks, where messages do wait for each other.
slow=100000000
export COLL_MEMORY=off	# TCP can be paced

# Long messages go straight to their place, cut or not. What comes before its receive has
# started is copied: of several tries one in which the ranks keep step.
uncopied() {	# ENGINE POLICY
	for try in 1 2 3 4 5; do
		COLL_CLUSTERS=1+1 COLL_WAN_PACING=$slow COLL_LINK_POLICY=$2 COLL_ENGINE=$1 \
			COLL_LINK_CHUNK=64K "$COLL" run -t 100 -n 2 -- "$BUILD/tests/multi/concurrent_collectives" 4 4000000 1 \
			>"$work/out" 2>&1 || break
		[ "$(value chunks)" -ge $((2 * 4 * 61)) ] || break
		[ "$(value copied)" -lt 3200000 ] && return
	done
	cat "$work/out"
	return 1
}
ok "a long message goes in chunks, and at most a tenth is copied: uring" silent uncopied uring occupancy
ok "... with rr" silent uncopied uring rr
ok "... with epoll" silent uncopied epoll occupancy

# The last that starts is the shortest. It overtakes none of the older (occupancy); in
# turns it is through first (rr).
order() {	# POLICY FIRST
	COLL_CLUSTERS=1+1 COLL_WAN_PACING=$slow COLL_SPIN=0s COLL_LINK_POLICY=$1 \
		COLL_LINK_CHUNK=16K COLL_BUFFER_BYTES=32K "$COLL" run -t 100 -n 2 -- \
		"$BUILD/tests/multi/concurrent_collectives" 4 8000000,8000000,8000000,800000 1 >"$work/out" 2>&1 ||
		{ cat "$work/out"; return 1; }
	[ "$(value first-was)" = "$2" ] || { cat "$work/out"; return 1; }
}
ok "occupancy: first come, first served" silent order occupancy 0
ok "rr: the short message completes first" silent order rr 3

# Small messages go before bulk, and bulk is done nevertheless.
overtake() {
	COLL_CLUSTERS=1+1 COLL_WAN_PACING=$slow COLL_LINK_CHUNK=16K COLL_BUFFER_BYTES=32K \
		"$COLL" run -t 100 -n 2 -- "$BUILD/tests/multi/concurrent_collectives" 4 \
		8000000,8000000,800,4000 1 >"$work/out" 2>&1 || { cat "$work/out"; return 1; }
	[ "$(value first-was)" -ge 2 ] && [ "$(value expedited)" -ge 2 ] ||
		{ cat "$work/out"; return 1; }
}
ok "small messages overtake long ones" silent overtake

# Groups have connections of their own: they wait for each other.
deferred() {
	COLL_CLUSTERS=1+1 COLL_LINK_CHUNK=64K COLL_LINK_POLICY=$1 "$COLL" run -t 100 -n 2 -- \
		"$BUILD/tests/multi/concurrent_collectives" 4 4000000 1 alltoall groups >"$work/out" 2>&1 ||
		{ cat "$work/out"; return 1; }
	[ $(($(value deferred) > 0)) = "$2" ] || { cat "$work/out"; return 1; }
}
ok "occupancy: bulk of several links takes turns" silent deferred occupancy 1
ok "rr: TCP shares the bandwidth" silent deferred rr 0

refused() {
	! COLL_LINK_POLICY=fair "$COLL" run -n 1 -- "$BUILD/tests/multi/concurrent_collectives" 1 8 \
		>"$work/out" 2>&1 && grep -q 'rr, occupancy or occupancy-hier' "$work/out" &&
		! COLL_LINK_CHUNK=100 "$COLL" run -n 1 -- "$BUILD/tests/multi/concurrent_collectives" 1 8 \
			>"$work/out" 2>&1 && grep -q '4K to 128M' "$work/out"
}
ok "another policy, or too short a chunk, is refused" silent refused

# Else one would measure the system's without a word.
not_there() {	# OPTION
	! env "$1=fastest" "$COLL" run -n 1 -- "$BUILD/tests/multi/concurrent_collectives" 1 8 >"$work/out" 2>&1 &&
		grep -q "'fastest' is not in this kernel; valid: .*reno" "$work/out" || { cat "$work/out"; return 1; }
}
for option in COLL_CONGESTION COLL_WAN_CONGESTION; do
	ok "$option: one that the kernel does not have is refused" silent not_there $option
done
not_allowed() {
	cp "$COLL" "$BUILD/tests/multi/concurrent_collectives" "$work/" && chmod 755 "$work" || return 1
	! COLL_CONGESTION=$forbidden setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
		--inh-caps=-all "$work/coll" run -n 1 -- "$work/concurrent_collectives" 1 8 >"$work/out" 2>&1 &&
		grep -q "'$forbidden' is not allowed without CAP_NET_ADMIN; valid: " "$work/out" ||
		{ cat "$work/out"; return 1; }
}
tr ' ' '\n' </proc/sys/net/ipv4/tcp_allowed_congestion_control >"$work/allowed"
forbidden=$(tr ' ' '\n' </proc/sys/net/ipv4/tcp_available_congestion_control | grep -vxFf "$work/allowed" | head -1)
if [ -n "$forbidden" ] && [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	ok "one that this user may not have is refused" silent not_allowed
else
	skip "one that this user may not have" "all are allowed, or this is no root"
fi
tap_end
