#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll report has what colld saw of the user's ranks: of a job that runs, and when it has ended. The
# ranks and what is planted share the last CPU. /run is the test's own.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/own_run.sh"
as_user() {
	setpriv --reuid=$user --regid=$user --clear-groups "$@"
}
cp "$BUILD/coll" "$BUILD/tests/multi/report_cause" "$work"
mkdir "$work/mine"
chown $user "$work/mine"

setsid taskset -c "$last" "$work/report_cause" burn backup$$ 100 &
pids="$pids $!"
printf 'housekeeping %s\napplication %s\nkeep comm=*\n' "$first" "$last" >"$work/policy"
"$BUILD/colld" --policy "$work/policy" --act advise --metrics 0 2>"$work/said" &
daemon=$!
pids="$pids $daemon"
"$job" begin one $user
setpriv --reuid=$user --regid=$user --clear-groups env COLL_REPORT="$work/mine/report" taskset -c "$last" \
	"$work/coll" run -q -n 2 --bind none --no-prefix -- "$work/report_cause" busy 1 25 >"$work/ranks" 2>&1 &
ranks=$!
pids="$pids $ranks"
ok "colld leaves what it saw" soon 20 test -s /run/coll/observed/$user
name=$(as_user "$work/coll" show --json 2>/dev/null | grep -o 'run-[0-9]*' | head -1)
names_it() {
	as_user "$work/coll" report --json "$name" >"$work/live" 2>/dev/null && jq -e --arg name "backup$$" '
		[.loss[] | select(.seen_by == "colld") | .taken_by[]?.name] | index($name)' "$work/live"
}
ok "coll report has it without looks of its own" soon 20 quiet names_it
is "it is colld's, and the user may read it" "$(stat -c '%u %a' /run/coll/observed/$user)" "0 440"
ok "... and not write it" sh -c "! setpriv --reuid=$user --regid=$user --clear-groups \
	sh -c 'echo x >>/run/coll/observed/$user' 2>/dev/null"
ok "another user cannot read it" sh -c "! setpriv --reuid=$((user + 500)) --regid=$((user + 500)) \
	--clear-groups cat /run/coll/observed/$user >/dev/null 2>&1"
wait $ranks
like "the report of the job that has ended says what, and who saw it" "$(cat "$work/mine/report")" \
	"^- rank [01] \(node .*, CPU $last, by colld\): its core was taken by .*backup$$"
"$job" end one
kill $daemon
wait $daemon
printf 'housekeeping %s\napplication %s\npin comm=backup%s\nkeep comm=*\n' "$first" "$last" $$ >"$work/policy"
"$BUILD/colld" --policy "$work/policy" --act act --metrics 0 2>>"$work/said" &
daemon=$!
pids="$pids $daemon"
"$job" begin two $user
setpriv --reuid=$user --regid=$user --clear-groups taskset -c "$last" \
	"$work/coll" run -q -n 2 --bind none --no-prefix -- "$work/report_cause" busy 1 100 >"$work/ranks" 2>&1 &
ranks=$!
pids="$pids $ranks"
says_act() {
	name=$(as_user "$work/coll" show --json 2>/dev/null | grep -o 'run-[0-9]*' | head -1)
	as_user "$work/coll" report --json "$name" >"$work/live" 2>/dev/null && jq -e --arg name "backup$$" '
		[.loss[].taken_by[]? | select(.name == $name) | .act] | index("moved")' "$work/live"
}
ok "coll report says that colld has moved it away" soon 30 quiet says_act
kill $ranks
wait $ranks
"$job" end two
ok "after the job nothing is left" soon 10 test ! -e /run/coll/observed/$user
kill $daemon
wait $daemon
is "colld has ended as it should" $? 0
tap_end
