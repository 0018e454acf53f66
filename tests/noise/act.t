#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld finds what takes the cores of a job's ranks, and names it or moves it away until the job ends.
# The ranks and what is planted share the last CPU; the first one is for housekeeping. Affinities are
# judged, not times. The ranks are another user's: those of other jobs of this machine do not count.
. "$(dirname "$0")/../lib/tap.sh"
job=$(dirname "$0")/../../daemon/coll-job
if [ "$(nproc)" -lt 2 ] || [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP one CPU, or not root: nothing of others can be moved"
	exit 0
fi
work=$(mktemp -d)
chmod 755 "$work"
pids= group=
cleanup() {
	kill -9 $pids
	wait
	[ -z "$group" ] || rmdir "$group"
	rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

. "$(dirname "$0")/../lib/cpus.sh"
name=act$$
export COLL_JOB_CONFIG="$work/config"
echo "PIN=no STATE=$work/state" >"$COLL_JOB_CONFIG"
# Another user's programs cannot be in a folder of this one.
cp "$BUILD/coll" "$BUILD/colld" "$BUILD/tests/multi/report_cause" "$work"
CAUSE=$work/report_cause

# The ranks and what is planted go first, as far as that is possible: another program is no part of this.
for folder in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
	[ -f $folder/cpu.shares ] || grep -qw cpu $folder/cgroup.subtree_control 2>/dev/null || continue
	group=$folder/coll-$name
	mkdir "$group" 2>/dev/null || { group= ; continue; }
	{ echo 10000 >"$group/cpu.weight" || echo 262144 >"$group/cpu.shares"; } 2>/dev/null
	break
done
procs=${group:+$group/cgroup.procs}
in_front='echo $$ >"$0"; exec "$@"'	# by sh -c: what follows keeps the pid

cpus_of() {	# PID
	taskset -pc "$1" 2>/dev/null | sed 's/.*: //'
}
becomes() {	# WANTED COMMAND...: within twenty seconds
	wanted=$1
	shift
	soon 20 sh -c 'test "$(taskset -pc "$1" 2>/dev/null | sed "s/.*: //")" = "$0"' "$wanted" "$2"
}
said() {	# PATTERN
	grep -Eq -- "$1" "$work/said"
}
begin() {	# ARGUMENT ...
	: >"$work/said"
	"$work/colld" --policy "$work/policy" --state "$work/state" --metrics 0 --interval 1h "$@" 2>>"$work/said" &
	daemon=$!
	pids="$pids $daemon"
	soon 10 sh -c "grep -ls 'tfd:' /proc/$daemon/fdinfo/* >/dev/null"
}
end() {		# SIGNAL
	kill "-$1" "$daemon"
	wait "$daemon" 2>/dev/null
}
plant() {	# NAME [COMMAND ...]: of a session of its own, as a daemon is; its pid is $planted
	planted_name=$1
	shift
	sh -c "$in_front" "${procs:-/dev/null}" setsid "$@" taskset -c "$last" "$CAUSE" burn "$planted_name" 600 &
	planted=$!
	pids="$pids $planted"
	soon 10 sh -c "grep -qx '$planted_name' /proc/$planted/comm"
}
user=$((64000 + $$ % 500))
run() {		# two ranks on the last CPU
	sh -c "$in_front" "${procs:-/dev/null}" setpriv --reuid=$user --regid=$user --clear-groups taskset \
		-c "$last" "$work/coll" run -q -n 2 --bind none --no-prefix -- "$CAUSE" busy 1 600 >"$work/ranks" 2>&1 &
	ranks=$!
	pids="$pids $ranks"
}
stop_ranks() {
	kill "$ranks" 2>/dev/null
	wait "$ranks" 2>/dev/null
}

# ---- the policy ------------------------------------------------------------------------------

policy="housekeeping $first
application $last
keep comm=kept$$
pin comm=*$$
keep comm=*"	# whatever else this machine does
echo "$policy" >"$work/policy"
for wrong in "act" "act perhaps" "act act share=200%" "act act for=0s" "act act most=0" "act act x=1"; do
	echo "$wrong" >"$work/wrong"
	ok "refused: $wrong" sh -c "! '$work/colld' --check --policy '$work/wrong' 2>'$work/why'"
	like "  it says why" "$(cat "$work/why")" 'wrong:1: .*valid: '
done
"$work/colld" --act never --check --policy "$work/policy" 2>"$work/why"
is "--act: another word is exit code 2" $? 2
like "  it says what is valid" "$(cat "$work/why")" "'never'; valid: off, advise or act"
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
is "colld is killed: it stays" "$(cpus_of "$backup")" "$first"
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

echo "$policy
act act for=3s" >"$work/policy"
begin
ok "by a line of the policy" becomes "$first" cpus_of "$backup"
ok "... for so long as it says" soon 20 said "backup$$ .*was put back after .*as long as the policy allows"
is "... then it is back" "$(cpus_of "$backup")" "$last"
end TERM
plant second$$
echo "$policy
act act most=1" >"$work/policy"
begin
ok "no more at once than it says" soon 20 said "(backup|second)$$ .*: left alone: as many as the policy allows"
kill -9 "$planted"
end TERM
is "colld ends: all is where it was" "$(cpus_of "$backup")" "$last"
"$job" end three

# ---- who may ask ---------------------------------------------------------------------------------

echo "$policy" >"$work/policy"
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
