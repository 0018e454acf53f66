#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld finds what takes the cores of a job's ranks, and names it or moves it away until the job ends.
# Affinities are judged, not times.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/act.sh"

# ---- the policy ------------------------------------------------------------------------------

policy
for wrong in "act" "act perhaps" "act act share=200%" "act act for=0s" "act act most=0" "act act x=1" \
	"act hold leave=60%" "hold cgroup=/user.slice/user-1.slice" "hold cgroup=/" "hold unit=cron.service"; do
	echo "$wrong" >"$work/wrong"
	ok "refused: $wrong" sh -c "! '$work/colld' --check --policy '$work/wrong' 2>'$work/why'"
	like "  it says why" "$(cat "$work/why")" 'wrong:1: .*valid: '
done
"$work/colld" --act never --check --policy "$work/policy" 2>"$work/why"
is "--act: another word is exit code 2" $? 2
like "  it says what is valid" "$(cat "$work/why")" "'never'; valid: off, advise, act or hold"
"$job" begin x "no-such-user-$$" 2>"$work/why"
is "coll-job: a user that is not there is exit code 2" $? 2

# ---- act -------------------------------------------------------------------------------------

plant backup$$
kept_name=kept$$
backup=$planted
plant $kept_name
kept=$planted
begin --act act
run
sleep 3
is "without a job of coll-job nothing is moved" "$(cpus_of "$backup")" "$last"
"$job" begin one $user
ok "what takes the core of a job is moved away" becomes "$first" cpus_of "$backup"
sed 's/^/# /' "$work/said"
ok "... it runs there" soon 10 sh -c "test \"\$(sed 's/.*) //' /proc/$backup/stat 2>/dev/null | cut -d' ' -f37)\" = $first"
ok "... who, how much, from whom and what is done is logged" said \
	"act: backup$$ \(pid $backup, user 0, cgroup /.*\) took [0-9]+ % of a core from rank [01] of job run-[0-9]+ \(CPU $last\) in [0-9.]+ s: moved to CPUs $first until the job ends, at most for 1800 s"
like "... --status shows it" "$("$work/colld" --status --state "$work/state")" \
	"^moved for a job: backup$$ \(thread $backup\) to CPUs $first, from $last$"
ok "what a keep line names stays" soon 10 said "act: kept$$ .*: left alone: a keep line of the policy names it"
is "... where it was" "$(cpus_of "$kept")" "$last"
ok "neither rank is moved" sh -c "for rank in \$(pgrep -P $ranks); do
	taskset -pc \$rank | grep -q ': $last\$' || exit 1; done"
"$job" end one
ok "after the job it is where it was" becomes "$last" cpus_of "$backup"
ok "... which is logged" soon 10 said "act: backup$$ \(pid $backup\) was put back after .* s: the job ended"
is "... --status shows nothing" "$("$work/colld" --status --state "$work/state")" ""
ok "... nothing is left written down" soon 10 sh -c "test -z \"\$(ls '$work/state/acts')\""

"$job" begin two $user
ok "moved for the next job" becomes "$first" cpus_of "$backup"
taskset -apc "$allowed" "$backup" >/dev/null
"$job" end two
ok "what others moved meanwhile" soon 10 said "backup$$ .*was moved by others meanwhile, and left there"
is "... stays there" "$(cpus_of "$backup")" "$allowed"
taskset -apc "$last" "$backup" >/dev/null

"$job" begin three $user
ok "moved again" becomes "$first" cpus_of "$backup"
end 9
ok "colld is killed: its keeper puts it back" becomes "$last" cpus_of "$backup"
begin --act act
ok "moved by the next one" becomes "$first" cpus_of "$backup"
kill -9 $(pgrep -P "$daemon")
end 9
is "colld and its keeper are killed: it stays" "$(cpus_of "$backup")" "$first"
begin --act off
ok "the next one puts it back, also with off" becomes "$last" cpus_of "$backup"
sleep 4
is "off: nothing is moved" "$(cpus_of "$backup")" "$last"
end TERM
begin --act advise
ok "advise: what would be done is said" soon 20 said \
	"advise: backup$$ .*: it would be moved by: taskset -acp $first $backup"
is "... and not done" "$(cpus_of "$backup")" "$last"
end TERM

policy "act act for=3s"
begin
ok "by a line of the policy" becomes "$first" cpus_of "$backup"
ok "... for so long as it says" soon 20 said "backup$$ .*was put back after .*as long as the policy allows"
is "... then it is back" "$(cpus_of "$backup")" "$last"
end TERM
plant second$$
policy "act act most=1"
begin
ok "no more at once than it says" soon 20 said "(backup|second)$$ .*: left alone: as many as the policy allows"
kill -9 "$planted"
end TERM
is "colld ends: all is where it was" "$(cpus_of "$backup")" "$last"
"$job" end three

# ---- who may ask ---------------------------------------------------------------------------------

policy
begin --act act
ok "the user cannot begin a job" \
	sh -c "! setpriv --reuid=$user --regid=$user --clear-groups sh -c 'echo uid $user >$work/state/jobs/mine' 2>/dev/null"
"$job" begin of-another $((user + 500))
"$job" begin of-nobody
sleep 5
is "nothing is moved for ranks of a user without a job" "$(cpus_of "$backup")" "$last"
plant third$$ setpriv --reuid=$((user + 500)) --regid=$((user + 500)) --clear-groups
"$job" begin of-user $user
ok "with one it is" becomes "$first" cpus_of "$backup"
ok "a third user's program is not said" sh -c "! grep -q 'third$$ ' '$work/said'"
is "... and not moved" "$(cpus_of "$planted")" "$last"
"$job" end of-user
ok "after it all is as before" becomes "$last" cpus_of "$backup"
end TERM
tap_end
