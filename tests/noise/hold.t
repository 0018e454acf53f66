#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld holds back what takes the cores of a job's ranks and cannot be moved, or is not to be, while the ranks
# are in collectives: it is let go between, for its part of each second, and at the end. Policies and states are
# judged, not times.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/act.sh"

# ---- what is there -----------------------------------------------------------------------------

cpu_group=$group
group=
. "$(dirname "$0")/cgroup.sh"
freezer=$group
group=$cpu_group
groups=$freezer
frozen_now() {
	cat "$freezer/cgroup.freeze" "$freezer/freezer.state" 2>/dev/null | sed 's/FROZEN/1/; s/FREEZING/1/; s/THAWED/0/'
}
thaw() {
	[ -z "$freezer" ] || for file in cgroup.freeze:0 freezer.state:THAWED; do
		[ ! -e "$freezer/${file%%:*}" ] || echo "${file#*:}" >"$freezer/${file%%:*}"
	done
	[ -z "$freezer" ] || kill -9 $(cat "$freezer/cgroup.procs")
	sleep 0.2
}
policy_of() {	# PID: SCHED_OTHER
	chrt -p "$1" 2>/dev/null | sed -n 's/.*policy: //p' | sed 's/|.*//'
}
nice_of() {
	sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f17
}
is_policy() {	# PID POLICY
	[ "$(policy_of "$1")" = "$2" ]
}
is_frozen() {	# 0 or 1
	[ "$(frozen_now)" = "$1" ]
}
keeps() {	# COMMAND ...: for two seconds, at each of many looks
	looks=20
	while [ $looks -gt 0 ]; do
		"$@" || return 1
		sleep 0.1
		looks=$((looks - 1))
	done
}
nothing_left() {
	[ -z "$(ls "$work/state/acts" 2>/dev/null)" ]
}

# ---- held back while collectives run --------------------------------------------------------------

policy "act hold leave=30%"
plant backup$$ nice -n 5
backup=$planted
run outside 0 600 "$work/outside"
begin
"$job" begin one $user
ok "what takes the core of a job is held back" soon 20 is_policy "$backup" SCHED_IDLE
sed 's/^/# /' "$work/said"
is "... it is where it was" "$(cpus_of "$backup")" "$last"
is "... its nice value stays" "$(nice_of "$backup")" $(($(nice) + 5))
ok "... who, how much, from whom and what is done is logged" soon 10 said \
	"act: backup$$ \(pid $backup, user 0, cgroup /.*\) took [0-9]+ % of a core from rank [01] of job run-[0-9]+ \(CPU $last\) in [0-9.]+ s: held back by SCHED_IDLE.* while ranks are in collectives, but for 30 % of each second, until the job ends, at most for 1800 s"
like "... --status shows it" "$("$work/colld" --status --state "$work/state")" \
	"^held back for a job: backup$$ \(thread $backup\) by policy idle, from other"
"$work/colld" --status --json --state "$work/state" >"$work/status"
ok "... as JSON, too" quiet jq -e --argjson pid "$backup" '.acts | any(.act == "held" and .by == "policy" and
	.pid == $pid and .thread == $pid and .before == "other" and .after == "idle")' "$work/status"
ok "it gets its part: it is let go" soon 20 is_policy "$backup" SCHED_OTHER
ok "... and held back again" soon 20 is_policy "$backup" SCHED_IDLE
touch "$work/outside"
chmod 644 "$work/outside"
ok "no rank is in a collective: it is let go until one is" soon 30 keeps is_policy "$backup" SCHED_OTHER
rm "$work/outside"
ok "... then it is held back" soon 20 is_policy "$backup" SCHED_IDLE
ok "neither rank is held back" sh -c "for rank in \$(pgrep -P $ranks); do
	chrt -p \$rank | grep -q 'SCHED_OTHER' || exit 1; done"
plant other$$
other=$planted
ok "another one is held back, too" soon 30 is_policy "$other" SCHED_IDLE
"$job" end one
ok "after the job they have their policies" soon 20 is_policy "$backup" SCHED_OTHER
is "... and its nice value" "$(nice_of "$backup")" $(($(nice) + 5))
ok "... the other one, too" soon 20 is_policy "$other" SCHED_OTHER
ok "... and their sessions have their weights" soon 10 sh -c "! cat /proc/$backup/autogroup /proc/$other/autogroup 2>/dev/null | grep 'nice 19'"
kill -9 "$other"
ok "... how long it was held back is logged" soon 10 said \
	"act: backup$$ \(pid $backup\) was put back after .* s \(held back for [0-9.]+ s of it, [0-9]+ times\): the job ended"
ok "... nothing is left written down" soon 10 nothing_left
is "... --status shows nothing" "$("$work/colld" --status --state "$work/state")" ""

# ---- who changes it, or ends, meanwhile -----------------------------------------------------------------

"$job" begin two $user
ok "held back for the next job" soon 20 is_policy "$backup" SCHED_IDLE
chrt -b -p 0 "$backup"
ok "it has changed its policy meanwhile: that is seen" soon 20 said "backup$$ .*was changed by others meanwhile, and left so"
ok "... and stays" keeps is_policy "$backup" SCHED_BATCH
"$job" end two
chrt -o -p 0 "$backup"
ok "... nothing is left written down" soon 10 nothing_left

plant brief$$
brief=$planted
"$job" begin three $user
ok "another one is held back" soon 20 is_policy "$brief" SCHED_IDLE
kill -9 "$brief"
ok "it ends meanwhile" soon 20 said "act: brief$$ \(pid $brief\) had ended"
ok "... nothing of it is left written down" soon 10 sh -c "! test -e '$work/state/acts/$brief'"

# ---- colld ends ---------------------------------------------------------------------------------------

ok "held back" soon 20 is_policy "$backup" SCHED_IDLE
end 9
ok "colld is killed: its keeper lets it go" soon 20 is_policy "$backup" SCHED_OTHER
ok "... nothing is left written down" soon 10 nothing_left
begin
held_and_stopped() {	# colld stops while it is held back
	soon 20 is_policy "$backup" SCHED_IDLE || return 1
	kill -STOP "$daemon"
	is_policy "$backup" SCHED_IDLE && return
	kill -CONT "$daemon"
	return 1
}
ok "held back by the next one" soon 5 held_and_stopped
kill -9 $(pgrep -P "$daemon")
end 9
ok "colld and its keeper are killed: it is still" is_policy "$backup" SCHED_IDLE
policy "act off"
begin
ok "the next one lets it go, with a policy of off" soon 20 is_policy "$backup" SCHED_OTHER
ok "... which is logged" soon 10 said "backup$$, which an earlier colld had held back, was put back"
ok "... nothing is left written down" soon 10 nothing_left
end TERM

policy "act hold for=3s"
begin
ok "for so long as the policy says" soon 30 said "backup$$ .*was put back after .*as long as the policy allows"
ok "... then it stays so" keeps is_policy "$backup" SCHED_OTHER
end TERM
policy "act hold"
begin
ok "held back" soon 20 is_policy "$backup" SCHED_IDLE
end TERM
is "colld ends: it has its policy" "$(policy_of "$backup")" SCHED_OTHER
"$job" end three

# ---- what cannot be moved, and what cannot be held back ----------------------------------------------------

cpuset=/sys/fs/cgroup/cpuset/coll-$name
if mkdir "$cpuset" 2>/dev/null && echo "$last" >"$cpuset/cpuset.cpus" && echo 0 >"$cpuset/cpuset.mems"; then
	groups="$groups $cpuset"
	echo "$backup" >"$cpuset/cgroup.procs"
	begin --act act
	"$job" begin four $user
	ok "what its cpuset keeps from being moved is held back" soon 20 is_policy "$backup" SCHED_IDLE
	ok "... which is logged" soon 10 said "backup$$ .*: held back by SCHED_IDLE.*; it cannot be moved: Invalid argument"
	"$job" end four
	ok "... until the job ends" soon 20 is_policy "$backup" SCHED_OTHER
	end TERM
	echo "$backup" >/sys/fs/cgroup/cpuset/cgroup.procs
	plant moved$$
	moved=$planted
	begin --act act
	"$job" begin five $user
	ok "moved away" becomes "$first" cpus_of "$moved"
	echo "$moved" >"$cpuset/cgroup.procs"
	echo "$moved" >/sys/fs/cgroup/cpuset/cgroup.procs
	taskset -apc "$first" "$moved" >/dev/null
	"$job" end five
	ok "its cpuset has changed twice: it is where it was" becomes "$last" cpus_of "$moved"
	end TERM
	kill -9 "$moved"
else
	rmdir "$cpuset" 2>/dev/null
	skip "cpusets" "no hierarchy of cpusets (version 1) can be written to"
fi
kill -9 "$backup"

# Not in a group that has no real-time budget; and little of the CPU that others need, too.
procs= percent=30
plant watchdog$$ chrt -r 1
watchdog=$planted procs=${group:+$group/cgroup.procs} percent=
begin --act hold
"$job" begin six $user
ok "a real-time task is left alone" soon 30 said \
	"watchdog$$ .*: left alone: it cannot be held back: it has a real-time policy"
is "... as it is" "$(policy_of "$watchdog")" SCHED_RR
kill -9 "$watchdog"

plant cron$$ sh -c 'setpriv --reuid=65001 --regid=65001 --clear-groups sleep 600 & exec "$@"' sh
cron=$planted
of_cron=$(pgrep -P "$cron")
pids="$pids $of_cron"
ok "what has started a user's process is left alone" soon 30 said \
	"cron$$ .*: left alone: it cannot be held back: it has started a process of a user, a container or a job"
is "... as it is" "$(policy_of "$cron")" SCHED_OTHER
is "... and so is that" "$(policy_of "$of_cron")" SCHED_OTHER
kill -9 "$cron" $of_cron
plant third$$ setpriv --reuid=$((user + 500)) --regid=$((user + 500)) --clear-groups
third=$planted
plant backup$$
backup=$planted
ok "the system's is held back" soon 20 is_policy "$backup" SCHED_IDLE
ok "another user's program is not" keeps is_policy "$third" SCHED_OTHER
ok "... nor is it said" sh -c "! grep -q 'third$$ ' '$work/said'"
kill -9 "$third"
"$job" end six
end TERM

# ---- the freezer ---------------------------------------------------------------------------------------

if [ -n "$freezer" ]; then
	policy "act hold leave=30%" "hold cgroup=/$name"
	echo "$backup" >"$freezer/cgroup.procs"
	begin
	"$job" begin seven $user
	ok "a cgroup that the policy names is frozen" soon 20 is_frozen 1
	sed 's/^/# /' "$work/said"
	ok "... which is logged" soon 10 said "backup$$ .*: held back by the freezer of cgroup /$name while"
	is "... its policy stays" "$(policy_of "$backup")" SCHED_OTHER
	like "... --status shows it" "$("$work/colld" --status --state "$work/state")" \
		"^held back for a job: cgroup /$name \(process $backup\) by its freezer"
	ok "... it is let go" soon 20 is_frozen 0
	ok "... and frozen again" soon 20 is_frozen 1
	end 9
	ok "colld is killed: its keeper lets it go" soon 20 is_frozen 0
	ok "... nothing is left written down" soon 10 nothing_left
	begin
	ok "frozen by the next one" soon 20 is_frozen 1
	"$job" end seven
	ok "... until the job ends" soon 20 is_frozen 0
	ok "... nothing is left written down" soon 10 nothing_left
	"$job" begin eight $user
	ok "frozen" soon 20 is_frozen 1
	sleep 600 &
	pids="$pids $!"
	echo $! >"$freezer/cgroup.procs"
	ok "another one comes into the cgroup: it is let go" soon 20 said "backup$$ .*was put back after .*: it is not alone in its cgroup"
	ok "... and stays so" keeps is_frozen 0
	end TERM
	begin
	ok "who is not alone in it is not frozen" soon 20 said \
		"backup$$ .*: left alone: it cannot be held back: it is not alone in its cgroup"
	is "... nor held back else" "$(policy_of "$backup")" SCHED_OTHER
	"$job" end eight
	end TERM
else
	skip "the freezer" "no cgroup with a freezer can be made"
fi
stop_ranks
tap_end
