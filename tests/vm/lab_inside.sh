#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# In the test machine: two clusters and a WAN of netem's. The emulated CPU is slow, so
# only what cannot be faster than it is said to be is held to its time.
export PATH=/bin COLL_STORE_PROGRAM=/bin/coll-store COLL_DEADLINE=60s COLL_CONGESTION=cubic
net="--by netem --nic 20M --wan 20M --delay 10ms -t 100"

ok() {	# WHAT COMMAND...
	what=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		echo "ok - $what"
	else
		echo "not ok - $what"
		while read -r line; do echo "# $line"; done </tmp/said
	fi
}

ok "allreduce over netem's WAN, results right" \
	coll lab -c 2+2 $net -- coll bench allreduce --size 8,20000 --iterations 3 --warmup 1

streams() {
	COLL_WAN_STREAMS=3 coll lab -c 2+2 $net --loss 0.01 -- coll bench allreduce --size 100000 \
		--iterations 2 --warmup 1
}
ok "the same with 3 streams to a link, and one packet in a hundred lost" streams

# "delay 10.000 ms asked, 10.052 median, ..." in us; "rate 4.00 Mbit/s asked, 3.98 ..." in
# kbit/s. The emulated clock and CPU may make everything later and slower, nothing earlier.
thousands() {	# NUMBER
	fraction=${1#*.}000
	[ "${1#*.}" != "$1" ] || fraction=000
	echo "${1%%.*}$(printf %.3s "$fraction")"
}
calibrated() {
	coll lab -c 1+1 --by netem --wan 4M --delay 10ms --calibrate >/tmp/calibrated || return 1
	delay= rate=
	while read -r field asked unit word value rest; do
		echo "$field $asked $unit $word $value $rest"
		[ "$field" != delay ] || delay=$(thousands "$value")
		[ "$field" != rate ] || rate=$(thousands "$value")
	done </tmp/calibrated
	[ "$delay" -ge 9800 ] && [ "$rate" -le 4120 ] && [ "$rate" -gt 0 ]
}
ok "netem's WAN is not earlier than 10 ms, nor faster than 4 Mbit/s" calibrated
while read -r line; do echo "# $line"; done </tmp/calibrated

# "[0] mean 52.1 ms last 52.1 ms ...": 100 KB take 40 ms, and the way 10.
slow() {
	coll lab -c 1+1 $net -- concurrent_collectives 1 100000 1 >/tmp/flights 2>&1
	while read -r line; do
		echo "$line"
		case $line in
		*"last "*)
			last=${line#*last }
			[ "${last%%.*}" -ge 49 ] && return
			;;
		esac
	done </tmp/flights
	return 1
}
ok "it takes its time: a way of 10 ms, 20 Mbit/s" slow

# A packet that is lost is sent again after 200 ms or more.
loses_nothing() {
	coll lab -c 1+1+1 --no-clusters --by netem --delay 10ms -t 100 -- coll bench allreduce --size 8 \
		--algo butterfly --iterations 9 --csv >/tmp/bench || return 1
	while IFS=, read -r name _ _ _ _ _ _ _ _ p50 _; do
		echo "$name $p50"
		[ "$name" != allreduce ] || median=${p50%%.*}
	done </tmp/bench
	[ "$median" -ge 19900 ] && [ "$median" -lt 150000 ]
}
ok "without a limit of its rate it loses nothing" loses_nothing
