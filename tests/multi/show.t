#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll show: jobs that hang in known ways. It names the cause and the rank, from outside.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/hang.sh"

in_time() {
	began=$(date +%s%N)
	"$COLL" show "$job" >"$work/out" || return 1
	[ $(($(date +%s%N) - began)) -lt $(($(limit 2 20) * 1000000000)) ]
}

# plant WHAT WHY RANK PATTERN NAME=VALUE ...
plant() {
	what=${1%:*} more= why=$2 rank=$3 pattern=$4
	case $1 in *:*) more=${1#*:} ;; esac
	shift 4
	hang "$@"
	ok "$what: rank $rank is the cause ($why) $*" quiet soon 20 names "$why" "$rank"
	ok "... said in time, in one sentence" quiet in_time
	like "... with what matters" "$(cat "$work/out")" "^first cause: .*$pattern"
}

A=COLL_LOG=warn
plant mismatch mismatch 0 'calls gather .* where rank [12] calls bcast' $A; finish
plant loop outside 2 'computing outside of the library for .* has not called allreduce no. 4' $A
like "the wait chain is drawn" "$(cat "$work/out")" '^wait chain: 0 -> 2$'
like "who waits for whom, in which op" "$(cat "$work/out")" \
	'rank 0 -> rank 2: recv, op [0-9]+, slot 0, 4 B, for .* s in allreduce .* of world; link memory'
"$COLL" show >"$work/out"
like "the list has the job" "$(cat "$work/out")" "^$job +hang +$ranks/$ranks +2 waits"
"$COLL" show --metrics "$job" >"$work/out"
like "metrics name the cause" "$(cat "$work/out")" \
	"^coll_job_cause_seconds\{job=\"$job\",program=\"hang\",why=\"outside\",rank=\"2\"\} [0-9.]+\$"
ok "... count ranks that wait" found "^coll_job_ranks_waiting\{.*\} 2\.0+\$" out
is "... and end as OpenMetrics do" "$(tail -1 "$work/out")" "# EOF"
exits 1 "$COLL" show no-such-job
ok "no such job: exit code 1" found 'no job .no-such-job.' err
ok "--over: exit code 2 if a rank waits longer" exits 2 "$COLL" show --over 1ms "$job"
ok "... else 0" exits 0 "$COLL" show --over 1h "$job"

# Another user sees nothing, and can make nothing seen.
if setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null; then
	cp "$COLL" "$BUILD/tests/multi/hang" "$work" && chmod 755 "$work" "$work/coll" "$work/hang"
	like "another user sees no job" "$(cd / && setpriv --reuid=65534 --regid=65534 \
		--clear-groups "$work/coll" show)" '^no job of this user'
	pid=$(jq '.jobs[0].rank[0].pid' "$work/show")
	page=$(ls -l "/proc/$pid/fd" | sed -n 's/.* \([0-9]*\) -> .memfd:coll-flight.*/\1/p')
	ok "the rank has a page" test -n "$page"
	ok "another user cannot read it" exits 1 setpriv --reuid=65534 --regid=65534 \
		--clear-groups cat "/proc/$pid/fd/$page"
	(cd / && exec setpriv --reuid=65534 --regid=65534 --clear-groups timeout 60 \
		"$work/coll" run -q -n 1 -- "$work/hang" again) >/dev/null 2>&1 &
	other=$!
	ok "... and a job of another user is not shown" quiet test \
		"$(sleep 1; "$COLL" show | grep -c ' hang ')" -eq 1
	kill $other
else
	skip "another user sees nothing" "setpriv cannot become another user here"
fi
finish

plant stop stopped 2 'stopped \(SIGSTOP\)' $A; finish
plant never outside 2 'asleep outside .* has not called allreduce no. 4' $A; finish
plant slow outside 2 'asleep outside .* has not called allreduce no. 4' $A
ok "... which then calls: the job ends" quiet soon 20 grep -q done "$work/said"
finish
plant function in-function 0 "in the application's own reduction function" $A; finish

# Nobody waits: the fact is said, and that it is no cause yet.
alone() {	# WHAT WHY PATTERN
	what=$1 more=
	hang $A
	ok "$1: rank 0 is named ($2), and that no rank waits" quiet soon 20 names "$2" 0
	ok "... in JSON, with the time" quiet jq -e \
		'.jobs[0].cause | .awaited == false and .seconds > 1 and .chain == []' "$work/show"
	ok "... said in time, in one sentence" quiet in_time
	like "... with what matters" "$(cat "$work/out")" "^no rank waits; rank 0: $3"
	"$COLL" show --metrics "$job" >"$work/out"
	like "... in the metrics, with the time" "$(cat "$work/out")" \
		"^coll_job_cause_seconds\{.*,why=\"$2\",rank=\"0\"\} ([1-9]|[0-9]{2,})\.[0-9]+\$"
	finish
}
alone left in-function "in the application's own reduction function for [0-9.]+ s\$"
alone idle stopped 'stopped \(SIGSTOP\); .*; it has not called for [0-9.]+ s$'

plant ahead no-progress 2 'allreduce no. 4 needs its calls' $A; finish
plant deadlock deadlock 0 'rank 0 waits for rank 2 in .*, rank 2 waits for rank 0 in' $A; finish
plant full outside 2 'rank 0 cannot send it a message of [0-9]+ bytes' $A; finish
plant groups:300 outside 2 'has not called allreduce no. 304 of world' $A; finish
plant child outside 2 'computing outside' $A
is "a child is no rank" "$(jq '.jobs[0].rank | length' "$work/show")" $ranks
finish
if strace -qq -o /dev/null true 2>/dev/null; then
	plant thread held 2 'its progress thread is held by a debugger .debugger, pid' $A; finish
else
	skip "a held thread of progress" "no process may be traced here"
fi

# Without memory, and with the other engine.
T=COLL_MEMORY=off
plant loop outside 2 'computing outside' $T; finish
plant full outside 2 '[0-9]+ bytes for it wait unread' $T; finish
E=COLL_ENGINE=epoll
plant stop stopped 2 'stopped' $E; finish
plant full outside 2 '[0-9]+ bytes for it wait unread' $E $T; finish
plant deadlock deadlock 0 'rank 2 waits for rank 0' $E $T; finish

# What the library says by itself, half of a deadline before it gives up; and the dump.
half() {	# LEVEL
	mkdir -p "$work/dumps"
	what=never more=
	hang COLL_DEADLINE=12s COLL_DUMP="$work/dumps" COLL_LOG=$1
	soon 40 test -n "$(sleep 13; ls "$work/dumps")"
	finish
	grep -c 'half of its deadline' "$work/err"
}
is "at half of the deadline one rank reports" "$(half warn)" 1
like "... with the cause" "$(cat "$work/err")" \
	'^coll: rank [01] waits for .* first cause: rank 2: asleep outside of the library'
is "... unless COLL_LOG=error" "$(half error)" 0
ls "$work/dumps"/*.flight >"$work/files" 2>/dev/null
ok "a failed group's ranks have dumped" test -s "$work/files"
like "coll show reads dumps" "$("$COLL" show $(cat "$work/files") 2>&1)" 'a group has failed: .*rank 2'
echo nonsense >"$work/dumps/bad"
ok "... and refuses what is none" exits 1 "$COLL" show "$work/dumps/bad"
ok "... with words" found 'not a flight record' err

what=loop more=
hang COLL_DUMP_SIGNAL=USR2 COLL_DUMP="$work"
soon 20 names outside 2
pid=$(jq '.jobs[0].rank[0].pid' "$work/show")
kill -USR2 "$pid"
ok "a signal dumps, if asked for" quiet soon 10 test -s "$work/coll-$job-0.flight"
is "... for this user alone" "$(stat -c %a "$work/coll-$job-0.flight")" 600
ok "--dump writes all ranks" quiet exits 0 "$COLL" show --dump "$work" "$job"
is "... $ranks files" "$(ls "$work"/coll-"$job"-*.flight | wc -l)" $ranks

# Hosts, by a remote shell that stays here.
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$work/ssh"
chmod +x "$work/ssh"
"$COLL" show --json --ssh "$work/ssh" --hosts a,b "$job" >"$work/out"
holds "--hosts merges what the hosts say" \
	".jobs | length == 1 and (.[0].rank | length) == $ranks and .[0].cause.why == \"outside\""

# Of these one has said all, and the other nothing; both stay, whatever they are told.
cat >"$work/stays" <<'END'
#!/bin/sh
trap '' TERM
host=$1
shift
[ "$host" = mute ] || { sh -c "$*"; exec >/dev/null; }
for _ in $(seq 60); do sleep 1; done
END
chmod +x "$work/stays"
timeout -k 1 40 "$COLL" show --json --ssh "$work/stays" --hosts a,mute "$job" >"$work/out" 2>"$work/err"
is "a remote shell that does not end is an error, not waited for" $? 1
like "... in words, of one that had answered" "$(cat "$work/err")" \
	'host a: .* did not end within 20 s; what it said is shown'
like "... and of one that had not" "$(cat "$work/err")" 'mute: Connection timed out'
holds "... and what the first said is shown" ".jobs | length == 1 and (.[0].rank | length) == $ranks"

# The trace: each rank has its calls, and a message comes after it was sent.
"$COLL" show --trace "$job" >"$work/out"
holds "--trace is a Chrome trace" '.traceEvents | length > 10'
holds "... with the calls of each rank" \
	"[.traceEvents[] | select(.ph == \"X\" and .cat == \"run\") | .pid] | unique | length == $ranks"
holds "... and arrows from sends to receives, none back in time" \
	'[.traceEvents[] | select(.ph == "s" or .ph == "f")] | group_by(.id) |
	 length > 0 and all(.[]; length == 2 and
	 (map(select(.ph == "s"))[0].ts <= map(select(.ph == "f"))[0].ts))'
finish

COLL_FLIGHT=0 what=loop more=
export COLL_FLIGHT
timeout 30 "$COLL" run -q -n 1 -- "$BUILD/tests/multi/hang" again >/dev/null 2>&1 &
jobs=$!
ok "flight=0: nothing is shown" test "$(sleep 1; "$COLL" show | grep -c ' hang ')" -eq 0
unset COLL_FLIGHT
kill $jobs
if strace -qq -o /dev/null true 2>/dev/null; then
	COLL_LOG=info timeout 60 strace -f -qq -o /dev/null -e trace=memfd_create \
		-e inject=memfd_create:error=EPERM "$COLL" run -q -n 2 --no-prefix -- \
		"$BUILD/tests/multi/hang" slow >"$work/out" 2>"$work/err"
	is "where memfd_create() is forbidden the job runs" "$(grep -c done "$work/out")" 2
	ok "... and says that it is not seen" found 'coll show cannot see it' err
else
	skip "without memfd_create()" "no process may be traced here"
fi
tap_end
