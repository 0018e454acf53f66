#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Short messages to several ranks of a node are posted on boards, and results are as ever: with calls that
# block and calls that do not, of several groups at once, whoever is late, sleeps, leaves or dies.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# calls RANKS WAY SEED [COMPARISON]: all come to their ends; what rank 0 has posted is compared with 0, and is not all
# that it has sent: some went by rings.
export COLL_ALLREDUCE=one-shot COLL_ALLGATHER=one-shot COLL_BARRIER=one-shot COLL_BCAST=linear COLL_ALLTOALL=linear
calls() {
	timeout -s KILL 100 "$COLL" run -q -n "$1" -t 90 --no-prefix -- \
		"$BUILD/tests/multi/board" "$2" "$3" >"$work/out" 2>"$work/err" && grep -q '^right$' "$work/out" &&
		[ "$(sed -n 's/^posted \([0-9]*\).*/\1/p' "$work/out")" ${4:--gt} 0 ] &&
		awk '/^posted/ && NF > 2 { exit !($2 * ('"$1"' - 1) < $4) }' "$work/out" ||
		{ sed 's/^/# /' "$work/out" "$work/err"; false; }
}

ok "3 ranks" calls 3 mixes 1
ok "4 ranks" calls 4 mixes 2
ok "8 ranks" calls 8 mixes 3
COLL_ENGINE=epoll calls 4 mixes 4
result $? "4 ranks, epoll"
COLL_MEMORY=copy calls 4 mixes 5 -eq
result $? "memory=copy: nothing is posted"
COLL_MEMORY=off calls 4 mixes 6 -eq
result $? "memory=off"
COLL_PROGRESS=thread calls 3 mixes 7 -eq
result $? "progress=thread: nothing is posted"
ok "two ranks: there is one reader" calls 2 mixes 8 -eq
ok "a rank that maps nothing has its ring" calls 4 copies 9
ok "groups come and go" calls 4 frees 10
for way in soon waits tests; do
	ok "the first calls: $way" calls 4 $way 11
done
COLL_ENGINE=epoll calls 4 waits 12
result $? "the first calls: waits, epoll"

# It is said of a call, and counted.
says() {	# RANKS NAME=VALUE ...
	ranks=$1
	shift
	env "$@" COLL_EXPLAIN=1 timeout 60 "$COLL" bench allreduce -n "$ranks" --size 8 --iterations 600 --counters --json \
		>"$work/out" 2>"$work/err" || return 1
	posted=$(sed -n 's/.*"board_sends": \([0-9]*\).*/\1/p' "$work/out" | sort -n | head -1)
	if grep -q 'allreduce .*, short messages by boards' "$work/err"; then
		[ "$posted" -gt 0 ]
	else
		[ "$posted" -eq 0 ] && return 2
	fi
}
ok "explain and counters say: by boards" says 4 A=a
for without in COLL_MEMORY=copy COLL_MEMORY=off COLL_PROGRESS=thread; do
	says 4 $without
	result $(($? != 2)) "... $without: not"
done
says 2 A=a
result $(($? != 2)) "... 2 ranks: not"

# Readers that come late need no more of rank 0.
late() {	# WAY RANKS-THAT-END
	timeout -s KILL 60 "$COLL" run -q -k -n 4 -t 50 --no-prefix -- \
		"$BUILD/tests/multi/board" "$1" >"$work/out" 2>"$work/err"
	[ "$(grep -cE '^(right|error)$' "$work/out")" -eq "$2" ] || { sed 's/^/# /' "$work/out" "$work/err"; return 1; }
}
ok "the root leaves" late leaves 4
ok "the root dies" late dies 3
ok "the root is ahead" late ahead 4

# A rank dies or stops wherever it is in a call: the others learn it in time, and go on.
for way in kill stop; do
	for rank in 0 3; do
		for collective in allreduce barrier; do
			timeout -s KILL 60 "$COLL" run -q -k -n 5 -t 50 --no-prefix -- \
				"$BUILD/tests/multi/rank_failures" $collective $way $rank "" 4 >"$work/out" 2>"$work/err"
			[ "$(grep -c '^survived$' "$work/out")" -eq 4 ] || { sed 's/^/# /' "$work/out"; false; }
			result $? "$way of rank $rank in $collective"
		done
	done
done
tap_end
