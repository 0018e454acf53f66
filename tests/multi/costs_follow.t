#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# measure=always: where links are slow when the job begins and fast later, the costs follow, on all
# ranks after the same call, and the choice with them.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lines.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export COLL_DEADLINE=30s COLL_MEASURE=always
# Without a pause into which a measurement could fit: messages that one kind of events lets go meet the other one.
slow='link:periodic:period=32ms,duration=30ms,model=occupancy;link:periodic:period=21ms,duration=19.9ms,model=occupancy'

# job RANKS CALLS FORM NAME=VALUE ...
job() {
	ranks=$1 calls=$2 form=$3
	shift 3
	env COLL_INJECT="$slow" "$@" timeout 100 "$COLL" run -n "$ranks" -- \
		"$BUILD/tests/multi/costs_follow" "$calls" "$form" >"$work/all" 2>&1 ||
		{ sed 's/^/# /' "$work/all"; return 1; }
	sed 's/^\[0\] //' "$work/all" >"$work/out"
}
algorithm() {	# WHEN
	sed -n "s/^$1: allreduce .*: \\([a-z-]*\\)[: ].*(least.*/\\1/p" "$work/out"
}

slow_at_first() {
	case $(algorithm first) in
	butterfly | reduce-bcast | linear | one-shot) ;;
	*) return 1 ;;
	esac
}

# The costs change; on a busy machine, which holds most messages up, not by the first survey.
changes() {	# FORM NAME=VALUE ...
	form=$1
	shift
	# A late rank is measured, too. Of a copy the world's costs do not tell.
	found='^node_alpha .* exchanges before call'
	[ "$form" = copy ] && found='measured meanwhile'
	for calls in 1500 6000 20000 60000; do
		job 4 $calls "$form" "$@" || return 1
		slow_at_first || { sed 's/^/# /' "$work/out"; return 1; }
		grep -q "$found" "$work/out" && return
	done
	sed 's/^/# /' "$work/out"
	return 1
}

# Bytes are costly, by option: few of them are sent, unless each message takes long.
follows() {
	changes blocking COLL_NODE_BETA=1us COLL_NODE_BYTE_GAP=1us "$@" || return 1
	has '^node_alpha .*: [0-9]+ exchanges before call [0-9]+$' '^changes [1-9]' \
		'^first: .*measured at the start' '^last: .*measured meanwhile' || return 1
	echo "# $(sed -n 's/^node_alpha *= *\([^ ]*\).*/\1/p' "$work/out"), $(algorithm first), then $(algorithm last)"
	case $(algorithm last) in
	r[ai]*) ;;
	*) sed 's/^/# /' "$work/out"; return 1 ;;
	esac
}
ok "costs follow the traffic, and the choice follows them" follows COLL_ENGINE=uring
ok "... with epoll and TCP" follows COLL_ENGINE=epoll COLL_MEMORY=off
ok "... with a progress thread" follows COLL_PROGRESS=thread

# What a message costs its ranks was measured as milliseconds: their own sends say what it is, on all ranks alike.
mends() {
	job 4 1500 blocking "$@" || return 1
	has '^start: node_overhead += [0-9.]+ms .*each more message of a burst' \
		'^node_overhead += [0-9.]+[nu]s .*a message sent: [1-4] ranks. own sends before call [0-9]+$' \
		'^last: .*, overhead [0-9.e-]+ us, .*measured meanwhile' '^changes [1-9]' || return 1
	sed -n 's/^start: \(node_overhead[^#]*\).*/# \1/p; s/^\(node_overhead[^#]*\).*/# then \1/p' "$work/out"
}
ok "a wrong overhead is mended by a rank's own sends: memory" mends COLL_ENGINE=uring
ok "... io_uring and TCP" mends COLL_ENGINE=uring COLL_MEMORY=off
ok "... epoll and TCP" mends COLL_ENGINE=epoll COLL_MEMORY=off
ok "... with a progress thread" mends COLL_PROGRESS=thread

some_start() { job 4 1200 mixed && has '^changes 0'; }
ok "where a rank does not block nothing changes" some_start
prepared() { changes persistent && has '^changes [1-9]'; }
ok "a run that was prepared before is planned again" prepared
copy() { changes copy && has '^last: .*measured meanwhile' '^changes 0'; }
ok "each group follows by its own calls" copy
given() {
	job 2 600 blocking COLL_NODE_ALPHA=3ms COLL_NODE_OVERHEAD=2ms COLL_NODE_BYTE_GAP=7ns COLL_GAMMA=9ns &&
		has '^node_alpha += 3ms .*given' '^node_overhead += 2ms .*given' '^node_byte_gap += 7ns .*given' \
			'^gamma += 9ns .*given'
}
ok "what an option gives stays" given
started() { job 2 600 blocking COLL_MEASURE=start && has '^changes 0' '^last: .*measured at the start'; }
ok "measure=start follows nothing" started


# By default nothing is measured when the job begins, and the first 256 calls of a group pass.
by_default() {
	for calls in 1500 6000 6000 6000; do
		job 2 $calls blocking COLL_MEASURE=auto || return 1
		grep -q 'measured meanwhile' "$work/out" && break
	done
	has '^node_alpha .*: [0-9]+ exchanges before call [0-9]+$' '^last: .*measured meanwhile' \
		'^node_overhead .*: [12] ranks. own sends before call [0-9]+$' \
		'^gamma .*: [12] ranks. own reductions or sums before call [0-9]+$' && ! grep -q 'at the start' "$work/out" ||
		{ sed 's/^/# /' "$work/out"; return 1; }
	[ "$(sed -n 's/^node_alpha .* before call //p' "$work/out")" -ge 512 ]
}
ok "measure=auto, the default, measures nothing at the start and follows" by_default
crowded() { job 8 3000 blocking COLL_MEASURE=auto && ! grep -q '^node_alpha' "$work/out"; }
ok "... costs do not where ranks share cores" crowded
short() { job 4 200 blocking COLL_MEASURE=auto && has '^changes 0' && ! grep -q 'measured' "$work/out"; }
ok "... a job of 200 calls is over before" short
unmeasured() { job 4 1500 blocking COLL_MEASURE=off && has '^changes 0' && ! grep -q 'measured' "$work/out"; }
ok "measure=off measures nothing" unmeasured

# A rank whose own environment says otherwise does as rank 0. Prints how many accounts a rank has open.
accounts() {	# OF-RANK-0 OF-RANK-1
	COLL_MEASURE=$1 timeout 60 "$COLL" run --no-prefix -n 2 -- \
		sh -c '[ "$COLL_RANK" = 0 ] || export COLL_MEASURE=$0; exec "$@"' "$2" \
		"$BUILD/tests/multi/costs_follow" 0 accounts >"$work/out" 2>&1 && sed -n 's/^accounts //p' "$work/out"
}
as_rank_0() {
	with=$(accounts auto off) && without=$(accounts off auto) || { sed 's/^/# /' "$work/out"; return 1; }
	[ ! -e /proc/self/schedstat ] || [ "$with" -gt "$without" ]
}
ok "all ranks look for lost cores, or none, as rank 0's measure says" as_rank_0

# All others end with an error that names the rank.
lost() {
	timeout 40 "$COLL" run -k -n 3 -- "$BUILD/tests/multi/costs_follow" 100000 lost >"$work/out" 2>&1
	[ $? -ne 124 ] && [ "$(grep -c 'lost: rank 1' "$work/out")" = 2 ] ||
		{ sed 's/^/# /' "$work/out"; return 1; }
}
ok "a rank dies meanwhile: all others say so" lost
tap_end
