#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll schedule: prints, draws, exports, reads back.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {		# EXPECTED-STATUS ARGUMENT ...
	expected=$1
	shift
	exits "$expected" "$COLL" schedule "$@"
}

redundant="allreduce butterfly-redundant 8 --option T=2"

run 0 $redundant && [ "$(grep -c '^schedule rank ' "$work/out")" -eq 8 ] &&
	found '^# allreduce butterfly-redundant:T=2, 8 ranks' out && found 'after any of' out
result $? "all ranks of the redundant butterfly"
cp "$work/out" "$work/all"

run 0 --check "$work/all" && [ "$(grep -c 'well formed' "$work/out")" -eq 8 ]
result $? "a printed schedule is read back"

run 0 allreduce butterfly-redundant:T=2 8 && cmp -s "$work/out" "$work/all"
result $? "an option behind the algorithm's name"

run 0 $redundant --rank 3 && [ "$(grep -c '^schedule rank ' "$work/out")" -eq 1 ] &&
	found '^schedule rank 3 of 8 ' out
result $? "one rank"

run 0 $redundant --json && cp "$work/out" "$work/json" && run 0 --check "$work/json" &&
	[ "$(grep -c 'well formed' "$work/out")" -eq 8 ] &&
	run 0 $redundant --json --rank 1 && cp "$work/out" "$work/json" &&
	run 0 --check "$work/json"
result $? "JSON, and read back"

run 0 allreduce butterfly 4 --dot && found '^digraph' out
result $? "DOT"

run 0 allreduce butterfly 4 --goal && found '^num_ranks 4$' out && found 'requires' out
result $? "GOAL"

run 1 $redundant --goal && found 'coll schedule: --goal: .*(any|optional)' err && [ ! -s "$work/out" ]
result $? "--goal refuses optional ops and any-waits"

run 2 $redundant --goal --rank 1 && found 'all ranks' err
result $? "--goal needs all ranks"

sed 's/^\( *[0-9]* reduce .*\) after.*/\1 after 99/' "$work/all" >"$work/bad"
run 1 --check "$work/bad" && found "bad:[0-9]+: " err
result $? "a bad wait is refused, with the line"

printf '{"rank": 0}' >"$work/bad" && run 1 --check "$work/bad" && [ -s "$work/err" ] &&
	printf '[1, {}]' >"$work/bad" && run 1 --check "$work/bad" &&
	: >"$work/bad" && run 1 --check "$work/bad" && run 1 --check "$work/absent" &&
	head -c 3000 /dev/urandom >"$work/bad" && run 1 --check "$work/bad"
result $? "a malformed schedule is refused"

run 2 allreduce gossip 4 && found 'valid: .*butterfly' err &&
	run 2 gossip ring 4 && found 'valid: barrier' err &&
	run 2 allreduce butterfly 0 && found 'RANKS' err &&
	run 2 allreduce butterfly 4 --rank 4 && found '--rank' err &&
	run 2 $redundant --option Q=1 && found "no option 'Q'; valid: T" err &&
	run 2 $redundant --option T=x && found 'whole number' err &&
	run 2 allreduce butterfly 4 --op band && found 'not defined' err &&
	run 2 allreduce butterfly 4 --type word && found 'valid: int8' err &&
	run 2 --loud && found 'valid: --rank' err && run 2 allreduce
result $? "wrong usage: the valid one"

run 0 --help && found 'usage: coll schedule' out
result $? "help"

tap_end
