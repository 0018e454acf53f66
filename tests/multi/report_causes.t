#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll run --report: jobs with one known cause each. Rank 1 has it, so rank 1 and the cause are to be
# named first, or, of a core that two ranks share, one of them. What is judged is what is named, not
# times: the causes are large, so that what else the machine does is small beside them.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
SECONDS_EACH=5
. "${0%/*}/../lib/causes.sh"
leave() {
	causes_end
	rm -rf "$work"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

named=0 jobs=0 storm= front=in_front

# job NAME OPTION ... -- PROGRAM: what coll report says of it is in $work/NAME.json.
job() {
	name=$1
	shift
	$front timeout -k 1 60 "$COLL" run -q -n 2 --bind core --no-prefix \
		--report "$work/$name" "$@" >"$work/$name.said" 2>&1 &&
		"$COLL" report --json "$work/$name.flight" >"$work/$name.json"
}

# row WHAT NAME KINDS CAUSES FILTER: a line of the table; the first loss has one of these.
row() {
	jobs=$((jobs + 1))
	found=$(jq -r '.loss[0] | "rank \(.rank) \(.kind) \(.cause)\(if .every_other_call then ", every other call"
		else "" end)\(if (.taken_by // [])[0] then ", " + .taken_by[0].name else "" end)"' \
		"$work/$2.json" 2>/dev/null)
	if [ -s "$work/$2.json" ] && jq -e "(.loss[0].kind | IN($3)) and (.loss[0].cause | IN($4)) and (.loss[0] | $5)" \
		"$work/$2.json" >/dev/null 2>&1; then
		named=$((named + 1))
		verdict=named
	else
		verdict="NOT NAMED"
		sed 's/^/# /' "$work/$2" "$work/$2.said" 2>/dev/null | head -30
	fi
	printf '# %-34s %-10s %s\n' "$1" "$verdict" "$found" | tee -a "$work/table"
}

if [ -z "$second" ]; then
	skip "causes are named" "one CPU: nothing can be on the CPU of one rank alone"
	tap_end
	exit
fi

job late -- "$CAUSE" asleep 1 $SECONDS_EACH
row "a rank of the application is late" late '"late-rank"' '"asleep"' '.rank == 1'
job uneven -- "$CAUSE" work 1 $SECONDS_EACH
row "uneven work" uneven '"late-rank"' '"work"' '.rank == 1'
job alternate -- "$CAUSE" alternate 1 $SECONDS_EACH
row "slow in every other call" alternate '"late-rank"' '"asleep"' '.rank == 1 and .every_other_call'
job disk -- "$CAUSE" disk 1 $SECONDS_EACH "$PWD/$BUILD/report_causes.$$"
rm -f "$BUILD/report_causes.$$"
row "a slow disk" disk '"late-rank"' '"disk"' '.rank == 1'

burn backup
job daemon -- "$CAUSE" busy 1 $SECONDS_EACH
end_burning
row "a program on a rank's CPU" daemon '"no-core", "late-rank"' '"task"' \
	'.rank == 1 and .taken_by[0].name == "backup" and .taken_by[0].share > 0.5'
cp "$work/daemon" "$work/daemon.text" 2>/dev/null

in_front timeout -k 1 60 taskset -c "$second" "$COLL" run -q -n 2 --bind none --no-prefix \
	--report "$work/shared" -- "$CAUSE" busy 1 $SECONDS_EACH >"$work/shared.said" 2>&1
"$COLL" report --json "$work/shared.flight" >"$work/shared.json"
row "two ranks on one CPU" shared '"no-core", "late-rank"' '"shared-core"' 'true'

# Not in front: that would be in front of the kernel's thread for softirqs, too.
if begin_storm; then
	front=beside
	job storm -- "$CAUSE" fixed 1 $SECONDS_EACH
	front=in_front
	end_burning
	row "a storm of softirqs" storm '"late-rank", "no-core"' '"interrupts"' \
		'.rank == 1 and .taken_by[0].kind == "softirqs" and .taken_by[0].name == "NET_RX"'
	[ "$verdict" != named ] || storm=1
else
	skip "a storm of softirqs" "$(cat "$work/no_storm")"
fi

if make_cgroup limit && limit_cgroup; then
	job limit -- "$CAUSE" limit 1 $SECONDS_EACH "$group/cgroup.procs"
	row "a throttled cgroup" limit '"no-core", "late-rank"' '"cpu-limit"' '.rank == 1'
else
	skip "a throttled cgroup" "no cgroup with the cpu controller can be made here"
fi

job inject -e COLL_INJECT=os:periodic:period=10ms,duration=6ms,rank=1 -- \
	"$CAUSE" none 1 $SECONDS_EACH
row "noise injected into a rank" inject '"no-core"' '"injected"' '.rank == 1'
job link -e COLL_INJECT=link:periodic:period=100ms,duration=80ms,model=occupancy,rank=1 -- \
	"$CAUSE" none 1 $SECONDS_EACH
row "a slow link" link '"late-messages"' '"link"' '.rank == 1 or .from == 1'

stop_and_go "$work/pid" &
burning=$!
job stopped -- "$CAUSE" pid 1 $SECONDS_EACH "$work/pid"
end_burning
row "a rank that is stopped" stopped '"late-rank", "late-messages", "no-core"' '"stopped"' '.rank == 1'

ok "the cause is named first in all but one of $jobs jobs" test $((jobs - named)) -le 1
# Each needs 2 ms of the core for a call: on two cores that is 2 ms, on one 4.
if [ "$ahead" != /dev/null ]; then
	ok "without a core that two ranks share half of the time would be saved, to a fifth" quiet jq -e '
		.without[] | select(.cause == "shared-core") | .ranks == 2 and .share_of_job > 0.4 and
		.share_of_job < 0.6 and .saved_between[0] < .saved_seconds and
		.saved_between[1] > .saved_seconds' "$work/shared.json"
else
	skip "what is saved without a shared core" "no cgroup can be put ahead of what else the machine does"
fi
like "... in words" "$(cat "$work/shared")" '^without ranks that share a core \(2 ranks\) +[0-9.]+ +[0-9.]+ %  .* and '
like "the text names the program, its cgroup and its share" "$(cat "$work/daemon.text")" \
	'^- rank 1 \(node .*, CPU [0-9]+\): its core was taken by `backup` \(cgroup /.*\) [0-9]+ %'
like "... and what to do" "$(cat "$work/daemon.text")" \
	"^- (Keep|Stop) .backup. (off CPU [0-9]+ )?on .*(collnoise pin init --cpus|all [0-9]+ have ranks)"
like "... and what the looks cost" "$(cat "$work/daemon.text")" \
	'^causes, by looks from outside in .* s \(they took [0-9]+ ppm of a core\)'
if [ -n "$storm" ]; then
	like "... which softirq it is" "$(cat "$work/storm")" \
		'^- rank 1 \(node .*, CPU [0-9]+\): its core was taken by softirqs \(mostly NET_RX\) [0-9]+ %'
	like "... and what to do" "$(cat "$work/storm")" '^- Lead interrupts on .* away from CPU [0-9]+'
fi
"$COLL" report --html "$work/page.html" --json "$work/daemon.flight" >"$work/json"
ok "the page says the same" silent python3 "${0%/*}/report_page.py" "$work/page.html" "$work/json"
ok "... also the program's name" grep -q 'taken by <code>backup</code>' "$work/page.html"

# On several hosts each looks at its own ranks: here by a shell that stays on this machine.
printf '#!/bin/sh\nexec sh -c "$2"\n' >"$work/shell"
chmod +x "$work/shell"
COLL=$(realpath "$COLL")
in_front timeout -k 1 60 "$COLL" run --hosts a:1,b:1 --ssh "$work/shell" -q --no-prefix \
	--report "$work/hosts" -- "$(realpath "$CAUSE")" asleep 1 $SECONDS_EACH >"$work/said" 2>&1
"$COLL" report --json "$work/hosts.flight" >"$work/json"
holds "the cause is named on several hosts as well" '.loss[0] | .rank == 1 and .cause == "asleep"' "$work/json"

ok "nothing but reports is left" test -z "$(find "$work" -type d -name '*.run-*')"

# By hand, of a job that runs and that nobody looks at.
sh -c 'echo $$ >"$0"; exec "$@"' "$ahead" \
	timeout -k 1 60 "$COLL" run -q -n 2 --bind core --no-prefix -- "$CAUSE" asleep 1 8 &
runner=$!
burning=$runner
started() {
	child=$(cat /proc/$runner/task/$runner/children 2>/dev/null)
	[ -n "$child" ] && "$COLL" show "run-${child% }" >/dev/null 2>&1
}
soon 20 started
ok "--watch: causes of a job that runs" exits 0 "$COLL" report --json --watch 3s "run-${child% }"
holds "... the cause is there" '.loss[0].cause == "asleep" and .observed.seconds > 1'
wait $runner
burning=

# A name that a terminal would obey, and that is no text, as the kernel has it.
burn "$(printf 'x\033[31m\377y')"
sh -c 'echo $$ >"$0"; exec "$@"' "$ahead" \
	timeout -k 1 60 "$COLL" run -q -n 2 --bind core --no-prefix -- "$CAUSE" busy 1 6 &
runner=$!
burning="$burning $runner"
soon 20 started
ok "--watch: a planted name" exits 0 "$COLL" report --json --watch 2s "run-${child% }"
holds "... is plain in the answer" '[.loss[].taken_by[]?.name] | index("x?[31m?y")'
ok "... there is nothing else than text" test -z "$(tr -d '\11\12\40-\176' <"$work/out")"
end_burning
ok "--watch of files: exit code 2" exits 2 "$COLL" report --watch 1s "$work/daemon.flight"
ok "... and what is valid" found '\-\-watch goes with a job that runs here' err
tap_end
