#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A network that breaks: ranks on both sides get an error within the deadline that names the
# ranks of the other side.
. "${0%/*}/../lib/tap.sh"
# LeakSanitizer finds no threads in the lab's PID namespace, and fails.
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
. "${0%/*}/../lib/lab.sh"

# What the ranks said, in $work/said: "rank R: T s: words".
cut() {	# ENGINE WHAT OPTION ...
	engine=$1 what=$2
	shift 2
	COLL_ENGINE=$engine COLL_DEADLINE=2s "$COLL" lab -t 30 -c 2+2 --delay 1ms --down "$what" \
		"$@" -- "$BUILD/tests/multi/allreduce_until_failure" >"$work/said" 2>&1
}

# Every rank has said something, soon after the deadline of 2 s.
in_time() {
	awk '/^rank [0-9]+: [0-9.]+ s: / { n++; late += $3 > 7 } END { exit n != 4 || late }' \
		"$work/said"
}

said() {	# RANK PATTERN
	grep -Eq "^rank $1: .*($2)" "$work/said" || { cat "$work/said"; return 1; }
}

# Late enough for all to be there, on a machine with other things to do: else later.
after() {	# ENGINE WHAT OPTION ...
	cut_engine=$1 cut_what=$2
	shift 2
	for wait in 2 5 10; do
		cut "$cut_engine" "$cut_what@${wait}s" "$@"
		grep -Eq 'no job|not joined' "$work/said" || return 0
	done
}

node() {	# ENGINE OPTION ...
	engine=$1
	shift
	after "$engine" 3 "$@" && in_time || { cat "$work/said"; return 1; }
	said 0 'rank 3' && said 1 'rank 3' && said 2 'rank 3' && said 3 'rank [012]'
}
ok "a node's link goes down: it and all others name who is lost, uring" silent node uring
ok "... with epoll" silent node epoll
ok "... with IPv6" silent node uring --ipv6
ok "both rails of a node go down: all name the lost rank" silent node uring --rails 2

wan() {
	after "$1" wan && in_time || { cat "$work/said"; return 1; }
	said 0 'rank [23]' && said 1 'rank [23]' && said 2 'rank [01]' && said 3 'rank [01]'
}
ok "the WAN goes down: each side names one of the other, uring" silent wan uring
ok "... with epoll" silent wan epoll

tap_end
