#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# In the test machine: two clusters and a WAN of netem's. The emulated CPU is slow, so
# only what cannot be faster than it is said to be is held to its time.
export PATH=/bin COLL_DEADLINE=60s COLL_CONGESTION=cubic
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

# "[0] mean 52.1 ms last 52.1 ms ...": 100 KB take 40 ms, and the way 10.
slow() {
	coll lab -c 1+1 $net -- flights 1 100000 1 >/tmp/flights 2>&1
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
