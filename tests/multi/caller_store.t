#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll_open_with(): ranks that find each other by a store of their own, and stores that are at fault.
. "${0%/*}/../lib/tap.sh"
unset COLL_RANK COLL_STORE COLL_CONFIG COLL_SECRET
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$BUILD/tests/multi/caller_store

# WHAT ENDED ARGUMENT...: so many ranks end with an error, which $work/err has.
ended() {
	what=$1 wanted=$2
	shift 2
	timeout -k 5 60 "$program" "$@" >"$work/err" 2>&1
	is "$what" "$?" "$wanted"
}

ended "1 rank, which needs no store" 0 good 1
for options in engine=uring engine=epoll progress=thread progress=auto; do
	ended "3 ranks, $options" 0 good 3 "$options deadline=20s"
done
COLL_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n') \
	ended "protect=seal with a secret that the store does not carry" 0 good 2 protect=seal
ended "protect=seal with one that it carries is refused" 2 good 2 protect=seal
like "in words" "$(cat "$work/err")" "secret that the caller's store has carried unencrypted"
ended "a rank that dies: the others agree by the store" 0 shrink 3 deadline=20s

ended "a get that returns late while ranks look each other up" 0 late 2 deadline=20s

ended "a store that ends before ranks look each other up" 2 ends 2 deadline=3s
like "names the rank that needs it" "$(cat "$work/err")" "rank [01]: it cannot look up another rank in the job's store"
ok "and none that has died" sh -c "! grep -E 'died|lost' $work/err"

ended "bad arguments" 0 arguments
ended "a store whose get fails" 2 get_fails 2 deadline=1s
like "says its error" "$(cat "$work/err")" "rank 1: the caller's store has not given .*: Input/output error"
ended "a store whose put fails" 2 put_fails 2 deadline=1s
like "says its error" "$(cat "$work/err")" "rank 0: the caller's store has not taken .*: No space left"
ended "a get that returns no error number" 2 get_lies 2 deadline=1s
ended "a value that another has changed" 2 forged 2 deadline=1s
ended "a rank that does not come" 1 absent 2 deadline=1s
ended "COLL_SECRET on one rank" 2 secret 2 deadline=1s
like "says which" "$(cat "$work/err")" "COLL_SECRET is set on rank 1 and not on rank 0"

# Longer than the deadline and the second of grace would be no deadline.
within() {
	began=$(date +%s)
	ended "$1" 2 "$2" 2 deadline=1s
	ok "which ends in time" test $(($(date +%s) - began)) -le "$(limit 6 30)"
}
within "a store that never answers" silent
within "a get that never returns" stuck
tap_end
