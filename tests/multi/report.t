#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll report: jobs with one planted cause each. It names the kind of loss and the rank first, from
# outside, while they run. Names and orders are judged, not times.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/live_job.sh"
trap 'exit 1' HUP INT TERM

# start LATE MS NAME=VALUE ...: a job of 4 ranks; $job is its name.
start() {
	late=$1 ms=$2
	shift 2
	live "$@" timeout -k 1 120 "$COLL" run -q -n 4 --bind none --no-prefix -- \
		"$BUILD/tests/multi/late_rank" 0 "$late" "$ms"
}

# names KIND RANK: the costliest loss.
names() {
	"$COLL" report --json "$job" >"$work/json" &&
		jq -e ".timed >= 50 and (.loss[0] | .kind == \"$1\" and .rank == $2)" "$work/json"
}

# plant KIND RANK LATE MS NAME=VALUE ...: a busy machine has delays of its own, so it may take a while.
plant() {
	kind=$1 rank=$2
	shift 2
	start "$@"
	ok "$kind of rank $rank is first: $*" quiet soon 10 names "$kind" "$rank"
}

noise=periodic:period=100ms,duration=80ms
plant late-rank 3 3 20 A=A
"$COLL" report "$job" >"$work/text"
like "the first sentence says who, how often, by how much and what it costs" \
	"$(sed -n 2p "$work/text")" \
	'^Collectives take .* % of the time; .* rank 3 is late in [0-9]+ % of calls by [0-9.]+ ms: .* of .* s \(.* %\)\.$'
like "what to do has seconds" "$(cat "$work/text")" \
	'^- Give rank 3 less to do.* [0-9.]+ m?s \([0-9.]+ %\) would be saved'
ok "one screen" test "$(wc -l <"$work/text")" -le 45
holds "JSON: the parts are no more than the time in collectives, and that no more than the job's" \
	'.late_rank_seconds + .no_core_seconds + .late_message_seconds <= .inside_seconds * 1.01 and
	 .inside_seconds <= .seconds and .least_seconds <= .inside_seconds' "$work/json"
holds "... calls are counted, by kind" '.call[0].collective == "allreduce" and .call[0].bytes == 4 and
	.call[0].calls > 0 and .call[0].mean_seconds >= .call[0].shortest_seconds' "$work/json"
like "the node has a line, with what took how much of it" "$(cat "$work/text")" \
	"^$(uname -n | cut -c 1-16) .* [0-9.]+ % .* lateness, not known why [0-9.]+ m?s"
holds "... and so in the JSON: its losses are those of its ranks" '.node | length == 1 and (.[0] |
	.ranks == 4 and .share_of_job > 0 and .by[0].seconds > 0 and .its_ranks.inside_seconds > 0)' "$work/json"
holds "... summed up" '(.node[0].cost_seconds - ([.loss[].cost_seconds] | add) | fabs) < 1e-6' "$work/json"
like "what would be saved is not known where the record does not tell" "$(cat "$work/text")" \
	"^leave out a node .* not known: the job is on one node"
holds "... nor in the JSON" '[.remedy[].remedy] | sort == ["T", "co-schedule", "leaf", "leave-out", "pin", "stop"]' "$work/json"
holds "... where nobody looked" '.remedy[] | select(.remedy == "pin") | .known == false and
	(.why | test("nobody looked at the ranks"))' "$work/json"
holds "... and each rank" '[.rank[].rank] == [0, 1, 2, 3]' "$work/json"
"$COLL" show --dump "$work" "$job" >/dev/null
finish
ok "the same of files" exits 0 "$COLL" report --json "$work"/*.flight
holds "... names the same" '.loss[0].kind == "late-rank" and .loss[0].rank == 3'
ok "no such job: exit code 1" exits 1 "$COLL" report "$job"
ok "... and what is valid" found "no job .$job. of this user is here; coll show lists those" err
ok "no argument: exit code 2" exits 2 "$COLL" report
ok "... and what is valid" found 'the job is missing; valid: one that coll show lists, or files' err

plant no-core 2 -1 0 COLL_INJECT=os:$noise,rank=2; finish
plant late-messages 2 -1 0 COLL_INJECT=link:$noise,model=occupancy,rank=2; finish
plant late-rank 1 1 20 COLL_MEMORY=off COLL_ENGINE=epoll; finish
plant late-rank 1 1 20 COLL_PROGRESS=thread; finish

# When a job ends.
ends() {	# FILE OPTION ... -- ARGUMENTS of late_rank
	file=$1
	shift
	timeout -k 1 100 "$COLL" run -q -n 3 --bind none --no-prefix "$@" >"$work/said" 2>&1
}
as_page() {	# RANKS: the report, and that many records beside it
	found '^Collectives take' "$file" && "$COLL" report --json "$work/$file.flight" >"$work/json" &&
		jq -e ".here == $1" "$work/json"
}
no_folder() {
	[ -z "$(find "$work" -name "$file.*" -type d)" ]
}

ends end --report "$work/end" -- "$BUILD/tests/multi/late_rank" 40 1 20
is "--report: the job ends well" $? 0
ok "... its report and its records are there" quiet as_page 3
ok "... what would be saved, and between what" quiet jq -e '[.remedy[] | select(.known)] |
	length > 0 and all(.saved_seconds >= 0 and .saved_between[0] <= .saved_seconds and
	.saved_seconds <= .saved_between[1])' "$work/json"
ok "... with the cause" quiet jq -e '.loss[0] | .kind == "late-rank" and .rank == 1' "$work/json"
ok "... and nothing else" no_folder
page() {	# RECORDS
	"$COLL" report --html "$work/page.html" --json "$1" >"$work/json" &&
		silent python3 "${0%/*}/report_page.py" "$work/page.html" "$work/json"
}
{ head -c 8 "$work/end.flight"; printf '\002'; tail -c +10 "$work/end.flight"; } >"$work/older.flight"
ok "a record of another version: exit code 1" exits 1 "$COLL" report "$work/older.flight"
ok "... it says which" found 'a flight record of version 2; this coll reads [0-9]+; valid' err
ok "--html: well-formed, nothing from outside, every number as in the JSON" page "$work/end.flight"
LC_ALL=C sed 's/late_rank/<b>"\&rank/g' "$work/end.flight" >"$work/hostile.flight"
ok "... also of a program that is named as it likes" page "$work/hostile.flight"
# As if rank 0 had been on another node: the name is a field of 64 bytes.
python3 - "$work/end.flight" "$(uname -n)" >"$work/nodes.flight" <<'END'
import sys
data = open(sys.argv[1], 'rb').read()
host = sys.argv[2].encode()[:63].ljust(64, b'\0')
sys.stdout.buffer.write(data.replace(host, b'<other> & "node"'.ljust(64, b'\0'), 1))
END
ok "... of two nodes: a row each" page "$work/nodes.flight"
holds "... as in the JSON" '[.node[].node] | sort | .[0] == "<other> & \"node\"" and length == 2' "$work/json"
ok "--html to where there is no folder: exit code 1" exits 1 "$COLL" report \
	--html /nowhere/page.html "$work/end.flight"
ok "... and what is valid" found 'cannot write /nowhere/page.html: .*; valid: the path of a file' err
cp "$work/page.html" "$work/before.html"
ok "a page that cannot be written whole: exit code 1" exits 1 sh -c 'trap "" XFSZ; ulimit -f 4; exec "$@"' sh \
	"$COLL" report --html "$work/page.html" "$work/end.flight"
ok "... why" found 'cannot write .*page.html: File too large' err
ok "... and the earlier one stays" cmp -s "$work/before.html" "$work/page.html"
ok "... alone" test "$(echo "$work"/page.html*)" = "$work/page.html"
ok "no space: exit code 1" exits 1 "$COLL" report --html /dev/full "$work/end.flight"
ok "... in words" found 'cannot write /dev/full: No space left on device' err
ends variable -e COLL_REPORT="$work/variable" -- "$BUILD/tests/multi/late_rank" 40 1 20
ok "COLL_REPORT alone: the same" quiet as_page 3
ok "... and nothing else" no_folder

ends killed --report "$work/killed" -e COLL_INJECT=kill:after=30,rank=2 -- \
	"$BUILD/tests/multi/late_rank" 60 1 20
is "a rank is killed: the job fails" $? 137
ok "... the others' records are there" quiet as_page 2
ok "... and nothing else" no_folder
ends given-up --report "$work/given-up" --timeout 4s -- "$BUILD/tests/multi/late_rank" 0 1 20
is "the launcher ends the job" $? 124
ok "... all records are there" quiet as_page 3
ok "... and nothing else" no_folder
printf '#!/bin/sh\n' >"$work/solver"
ends none --report "$work/solver" -- true
is "--report and a file that is no report: the job is not started" $? 1
ok "... and what is valid" found 'solver.: it or its .flight is there and is no report; valid' said
ok "... the file stays" found '^#!/bin/sh$' solver
ends none --report /nowhere/report -- true
is "--report and no such folder: the job is not started" $? 1
ends overlap --report "$work/overlap" -- "$BUILD/tests/multi/late_rank" 40 1 20 overlap
ok "calls that overlap with computing are counted" quiet as_page 3
ok "... and not timed, so nobody is late" quiet jq -e '.timed == 0 and .loss == [] and
	.call[0].calls == 40' "$work/json"

chosen() {	# FILTER OPTION ...: of a job of two ranks that measures; is it so in its report?
	filter=$1
	shift
	timeout -k 1 60 "$COLL" run -q -n 2 --bind none --no-prefix --report "$work/chosen" -- "$COLL" bench \
		allreduce --size 8 --time 0.2 "$@" >"$work/said" 2>&1 && "$COLL" report --json \
		"$work/chosen.flight" >"$work/json" && jq -e "$filter" "$work/json"
}
of_two='[.call[] | select(.collective == "allreduce" and .bytes == 8)] | map({ key: .algorithm, value: . }) | from_entries'
ok "a choice is compared with another of the job, by their times" quiet chosen "$of_two |
	(.linear | .chosen == \"by name\" and .regret_by == \"times\" and .regret_seconds >= 0 and
	 .compared_with.algorithm == \"butterfly\" and .regret_between[0] <= .regret_between[1])" \
	--algo butterfly,linear
ok "... else not known: the model has chosen auto's calls itself" quiet chosen \
	'[.call[] | select(.collective == "allreduce")] |
	all(.chosen == "auto" and .regret_by == "not-known" and .ranks == 2)'
holds "... which is counted" '.auto_regret | .["not-known"].calls > 0 and .model.calls == 0' "$work/json"
ok "... as the screen says" found '^regret of auto: not known for 100 %: made in one way only' chosen

touch "$work/some.flight"
tool=$(realpath "$COLL")
(cd "$work" && timeout 60 "$tool" report some >out 2>err)
is "a report instead of its records: 1" $? 1
ok "... it says where they are" found "the records of the report some are in some.flight" err
ends none --report "$work/none" -- true
ok "a program without libcoll: it says so" found 'report: no rank has left a record; valid' said
ends nowhere -e COLL_REPORT=/nowhere/report -- "$BUILD/tests/multi/late_rank" 3 1 1
is "no such folder: the job ends well" $? 0
ok "... and says what is valid" found \
	"rank .: report '/nowhere/report': No such file.*; valid: the path of a file in a folder" said
timeout 60 "$COLL" report --watch 1h no-job >"$work/out" 2>"$work/err"
is "--watch of no job does not wait" $? 1
ok "... and says that it is not here" found "no job 'no-job' of this user" err
live A=A timeout 60 "$COLL" run -q -n 2 --no-prefix -- "$BUILD/tests/multi/late_rank" 10 1 200
timeout 60 "$COLL" report --watch 1h "$job" >"$work/out" 2>"$work/err"
is "--watch of a job that ends, ends with it" $? 0
ok "... with its report" found "^job $job: late_rank, 2 ranks" out
finish
tap_end
