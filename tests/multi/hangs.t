#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ten kinds of hang (docs/guide/hangs.md): what coll show prints names the cause and the rank in each,
# from outside. After how long is in the comments. The tenth, a thread of coll.ko that gets no
# time, is planted in the emulated machine (tests/vm/show_test.c); here its like in user space is.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/hang.sh"
. "${0%/*}/../circuit/colld.sh"
colld= switch= lab=
clean() {
	kill $jobs $lab 2>/dev/null
	[ -z "$colld" ] || kill -KILL "$colld" 2>/dev/null
	exec 5>&-
	wait
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# One look at the job says so; and it has taken no longer than a look may.
says() {	# PATTERN
	began=$(date +%s%N)
	"$COLL" show "$job" >"$work/out" 2>"$work/err2" || return
	took=$((($(date +%s%N) - began) / 1000000))
	grep -Eq -e "^first cause: $1" "$work/out"
}
# The first look that says so came when the ranks had waited for so long.
named() {	# KIND PATTERN
	soon 30 says "$2"
	result $? "$1: cause and rank"
	waited=$(sed -n 's/^rank .* waits *\([0-9.]*\) s.*/\1/p' "$work/out" | sort -n | tail -1)
	echo "# said after ${waited:-0.0} s, by a look of $took ms: $(tail -1 "$work/out")"
	ok "... in time" test "$took" -lt "$(limit 2000 20000)"
}
plant() {	# KIND WHAT PATTERN NAME=VALUE ...
	kind=$1 what=$2 more= pattern=$3
	shift 3
	hang COLL_LOG=warn "$@"
	named "$kind" "$pattern"
}

plant "mismatched call" mismatch 'rank 0: calls gather .* where rank [12] calls bcast'
finish
plant "a rank in an endless loop" loop 'rank 2: computing outside .* not called allreduce no\. 4 of world'
finish
plant "SIGSTOP" stop 'rank 2: stopped \(SIGSTOP\); pid [0-9]+ on .* goes on after kill -CONT'
finish
plant "a full receive queue" full 'rank 2: .*its receive queue is full: [0-9]+ bytes .*; rank 0 cannot send' \
	COLL_MEMORY=off
finish
plant "a full receive queue, in memory" full 'rank 2: .*; rank 0 cannot send it a message of [0-9]+ bytes'
finish
plant "deadlock by two groups" deadlock \
	'deadlock: .*groups in different orders: rank 0 waits for rank 2 in .*, rank 2 waits for rank 0 in'
finish
plant "a rank that never calls" never 'rank 2: asleep outside .* has not called allreduce no\. 4 of world'
finish
plant "a slow rank" late \
	'rank 2: .*it was the last to call in [0-9]+ of the latest [0-9]+ calls, [0-9]+\.[0-9]+ s after'
finish
if strace -qq -o /dev/null true 2>/dev/null; then
	plant "a stopped thread of progress" thread \
		'rank 2: its progress thread is held by a debugger \(debugger, pid [0-9]+\)'
	finish
else
	skip "a stopped thread of progress" "no process may be traced here"
fi

# A manager of circuits that dies while ranks use their circuits.
mkfifo "$work/stdin"
"$BUILD/tests/circuit/fake_switch" 4 "$work/log" <"$work/stdin" >"$work/ports" 5>&- &
switch=$!
exec 5>"$work/stdin"
soon 10 test -s "$work/ports"
read -r FAKE_SCPI _ <"$work/ports"
printf 'socket %s\nswitch scpi 127.0.0.1:%s\nnode n0 1,2\nnode n1 3,4\n' "$work/socket" \
	"$FAKE_SCPI" >"$work/circuits"
printf 'COLL_NODE=n$COLL_RANK\nexport COLL_NODE\nexec "$@"\n' >"$work/node"
ok "colld starts" start_colld
ranks=2 wrap="sh $work/node" what=circuit more=
has_runs() {
	"$COLL" show --json "$job" | jq -e '[.jobs[].rank[].calls] | min > 20'
}
hang COLL_CIRCUITS="$work/socket" COLL_DEADLINE=60s
ok "its ranks use circuits" quiet soon 60 has_runs
kill -KILL "$colld"
wait "$colld" 2>/dev/null
colld=
named "a dead manager of circuits" \
	'rank [01]: waits for the manager of circuits \(colld\), which is gone, for a circuit to rank [01]'
finish
exec 5>&-
ranks=3 wrap=

# A path whose packets are lost: it goes down when the ranks are there, on a busy machine later.
if "$COLL" lab -c 1 -t 10 -- true >"$work/why" 2>&1; then
	lose() {
		for wait in 8 30; do
			COLL_DEADLINE=90s "$COLL" lab -t $((wait + 50)) -c 1+1 --delay 1ms --down 1@${wait}s -- \
				"$BUILD/tests/multi/hang" path >"$work/said" 2>&1 &
			lab=$!
			job=lab-$lab
			sleep $wait
			has_runs && return
			kill $lab
			wait $lab 2>/dev/null
		done
		return 1
	}
	lose >/dev/null
	result $? "two ranks in namespaces, whose link goes down"
	named "a lost packet path" \
		'rank [01]: its packets to rank [01] are lost: [0-9]+ bytes are not acknowledged after [0-9]+ retr'
	kill $lab
	wait $lab 2>/dev/null
	lab=
else
	skip "a lost packet path" "no network namespaces here: $(head -1 "$work/why")"
fi
tap_end
