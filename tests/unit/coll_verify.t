#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll verify: the algorithms hold, and planted defects are found.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {		# EXPECTED-STATUS ARGUMENT ...
	expected=$1
	shift
	exits "$expected" "$COLL" "$@"
}

run 0 verify --quick && found '^verified [0-9]+ schedules, 0 failures$' out
result $? "every algorithm holds"

run 0 verify --quick --json --collective allreduce --ranks 1-5 &&
	found '^\{"verified": [0-9]+, "failures": 0\}$' out
result $? "the outcome as JSON"

run 0 verify --list && found '^allreduce +butterfly-redundant .*\[T\]$' out &&
	found '^barrier +dissemination ' out
result $? "the list names collectives, algorithms and options"

run 0 verify --seed 7 --ranks 3 --collective allreduce && cp "$work/out" "$work/first" &&
	run 0 verify --seed 7 --ranks 3 --collective allreduce --jobs 1 &&
	cmp -s "$work/out" "$work/first"
result $? "one seed, one outcome, whatever the number of jobs"

# Each defect in each of these, none of which has an op that it could do without.
planted() {	# DEFECT ALGORITHM REASON
	run 1 verify --quick --plant "$1" --collective allreduce --algorithm "$2" --ranks 2-9 &&
		found '^FAILED  allreduce '"$2"': [0-9]+ ranks, root 0, count [0-9]+.*, seed 1$' out &&
		found "$3" out && found '^verified [0-9]+ schedules, 1 failure$' out &&
		! found '0 failures' out
	result $? "planted in $2: $1"
}

for algorithm in butterfly butterfly-redundant; do
	planted drop-wait $algorithm 'not ordered|deadlock|expected'
	planted any-wait $algorithm 'not ordered|deadlock|expected'
	planted swap-operands $algorithm 'expected|not the same bits|two ways to one result differ'
	planted wrong-peer $algorithm 'messages'
	planted skip-send $algorithm 'it sends|it expects'
	planted skip-recv $algorithm 'it sends|it expects'
	planted skip-local $algorithm 'expected|deadlock|not the same'
	planted wrong-offset $algorithm 'different index|expected|overlap|not ordered|two ways to one result differ'
	planted short-message $algorithm 'bytes meet a receive of'
	planted double-reduce $algorithm 'a contribution with itself|not ordered'
done

run 1 verify --plant skip-send --collective allreduce --algorithm butterfly --ranks 4 &&
	found '^schedule rank [0-3] of 4 ' out && found '^ +[0-9]+ recv ' out
result $? "a failure shows the rank's schedule in full"

run 1 verify --json --plant skip-send --collective barrier --ranks 4 &&
	found '"failures": 1, "failure": \{"collective": "barrier"' out && found '"reason": "' out
result $? "a failure as JSON"

run 1 verify --plant skip-send --collective barrier --ranks 4 && cp "$work/out" "$work/first" &&
	run 1 verify --plant skip-send --collective barrier --ranks 4 --jobs 1 &&
	[ "$(grep FAILED "$work/out")" = "$(grep FAILED "$work/first")" ]
result $? "the failure shown is the first, every time"

run 2 verify --quick --plant double-reduce --collective barrier &&
	found 'no op here can have the defect' err
result $? "a defect that no op can have"
run 2 verify --plant nothing && found 'valid: drop-wait' err
result $? "an unknown defect: the valid ones"
run 2 verify --collective gossip && found 'valid: barrier' err
result $? "an unknown collective: the valid ones"
run 2 verify --algorithm gossip && found '--list' err
result $? "an unknown algorithm: where to look"
run 2 verify --ranks 0 && found 'valid: N or A-B' err && run 2 verify --ranks 5-3 &&
	run 2 verify --ranks 3x
result $? "bad rank counts: the valid range"
run 2 verify --fast && found "no option '--fast'; valid: --quick" err && run 2 verify fast
result $? "an unknown option: the valid ones"
run 0 verify --help && found 'usage: coll verify' out
result $? "help"

tap_end
