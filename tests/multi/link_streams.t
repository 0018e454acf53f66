#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Links of several streams: results are right in whatever order chunks arrive, only bulk data
# goes over the streams, and the end of one stream ends the link.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

export COLL_DEADLINE=30s COLL_MEMORY=off	# streams are of TCP

run() {		# RANKS PROGRAM ARGUMENT ...
	ranks=$1
	shift
	"$COLL" run -q -t 100 -n $ranks --no-prefix -- "$BUILD/tests/multi/$@" >"$work/out" 2>&1 ||
		{ cat "$work/out"; return 1; }
}

# With chunks so short that all is cut; in the second place with short reads and writes.
every() {	# STREAMS ENGINE POLICY INJECTED
	export COLL_CLUSTERS=2+2 COLL_WAN_STREAMS=$1 COLL_ENGINE=$2 COLL_LINK_POLICY=$3 COLL_INJECT=$4
	COLL_LINK_CHUNK=8K run 4 groups && COLL_LINK_CHUNK=4K run 4 every_collective 30 1
	status=$?
	unset COLL_CLUSTERS COLL_WAN_STREAMS COLL_ENGINE COLL_LINK_POLICY COLL_INJECT
	return $status
}
ok "groups and every collective are right with 3 streams, uring" silent every 3 uring occupancy off
messages() {	# ENGINE INJECTED
	COLL_CLUSTERS=2+1 COLL_WAN_STREAMS=3 COLL_ENGINE=$1 COLL_LINK_CHUNK=4K COLL_INJECT=$2 \
		run 3 point_to_point
}
for engine in uring epoll; do
	ok "messages with a tag are right, too, $engine" silent messages $engine off
	ok "... with short reads and writes" silent messages $engine short:probability=0.2
done
ok "... with 2 streams, rr, short reads and writes, epoll" \
	silent every 2 epoll rr short:probability=0.2
ok "... with 16 streams, short reads and writes, uring" \
	silent every 16 uring occupancy-hier short:probability=0.2

# Per rank, of two of whom one sends 10 chunks: what streams carried, and all that crossed.
carried() {	# STREAMS SIZE STREAMED FAR_BYTES
	COLL_CLUSTERS=1+1 COLL_WAN_STREAMS=$1 "$COLL" bench bcast -n 2 --algo linear --size $2 \
		--iterations 4 --warmup 1 --counters --json >"$work/out" 2>&1
	grep -Eq "\"streamed\": *$3(\.0)?,?\$" "$work/out" &&
		grep -Eq "\"far_bytes\": *$4(\.0)?,?\$" "$work/out" || { cat "$work/out"; return 1; }
}
ok "bulk goes over streams, each chunk once" silent carried 4 640K 5 327680
ok "... small messages do not" silent carried 4 4K 0 2048
ok "without streams none is used" silent carried 1 640K 0 327680

near() {
	COLL_WAN_STREAMS=4 COLL_CLUSTERS=2 "$COLL" bench bcast -n 2 --algo linear --size 640K \
		--iterations 2 --counters --json >"$work/out" 2>&1
	grep -Eq '"streamed": *0(\.0)?,?$' "$work/out" || { cat "$work/out"; return 1; }
}
ok "near links have one connection" silent near

# The busiest connection, which is a stream, or all of a rank.
fails() {	# ENGINE WAY COLLECTIVE
	COLL_CLUSTERS=3+2 COLL_WAN_STREAMS=3 COLL_ENGINE=$1 timeout -s KILL 60 "$COLL" run -q -k \
		-n 5 -t 30 --no-prefix -- "$BUILD/tests/multi/rank_failures" $3 $2 3 >"$work/out.$1.$2" 2>&1
	[ "$(grep -c '^survived$' "$work/out.$1.$2")" -eq 4 ] ||
		{ cat "$work/out.$1.$2"; return 1; }
}
for engine in uring epoll; do
	ok "a stream breaks: both ends blame each other, all hear of it, $engine" \
		silent fails $engine link alltoall
done
ok "a rank dies: all name it" silent fails epoll kill allreduce
ok "a rank stops: all name it" silent fails uring stop bcast

# Who leaves has sent all it said, over streams too.
leaves() {	# ENGINE
	for what in early ahead unheard; do
		COLL_CLUSTERS=2+2 COLL_WAN_STREAMS=3 COLL_ENGINE=$1 timeout -s KILL 60 \
			"$COLL" run -q -n 4 -t 30 --no-prefix -- "$BUILD/tests/multi/early_exit" $what \
			>"$work/out" 2>&1
		[ "$(grep -c '^left$' "$work/out")" -eq 4 ] || { cat "$work/out"; return 1; }
	done
}
ok "ranks leave in order, uring" silent leaves uring
ok "... epoll" silent leaves epoll

explained() {
	COLL_CLUSTERS=1+1 COLL_WAN_STREAMS=4 COLL_EXPLAIN=1 "$COLL" bench bcast -n 2 --size 8K \
		--iterations 1 >"$work/out" 2>&1
	grep -q '4 streams to a link between clusters' "$work/out" || { cat "$work/out"; return 1; }
}
ok "COLL_EXPLAIN prints the number of streams" silent explained

# 10 MB/s there and back in 20 ms are 200 KB on the way; the windows are 64 KB.
chosen() {	# WAN_ALPHA STREAMS
	COLL_CLUSTERS=1+1 COLL_BETA=100ns COLL_WAN_ALPHA=$1 COLL_BUFFER_BYTES=64K COLL_EXPLAIN=1 \
		"$COLL" bench bcast -n 2 --algo linear --size 640K --iterations 4 --warmup 1 \
		--counters --json >"$work/out" 2>"$work/why"
	grep -q "$2 to a link between clusters ($3 KB in flight, a window is 66 KB)" \
		"$work/why" || { cat "$work/why"; return 1; }
	grep -Eq "\"streamed\": *$4(\.0)?,?\$" "$work/out" || { cat "$work/out"; return 1; }
}
ok "as many streams as fill the link are chosen" silent chosen 10ms "4 streams" 200 5
ok "... one where that is enough" silent chosen 3ms "1 stream" 60 0

refused() {	# STREAMS
	! COLL_WAN_STREAMS=$1 "$COLL" run -n 1 -- "$BUILD/tests/multi/concurrent_collectives" 1 8 >"$work/out" 2>&1 &&
		grep -q 'from 0 to 16' "$work/out" || { cat "$work/out"; return 1; }
}
ok "a negative number is refused" silent refused -1
ok "... and too many" silent refused 17
tap_end
