# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What tests of colld's acts have in common: sourced after tap.sh. The ranks and what is planted share the last
# CPU; the first one is for housekeeping. The ranks are another user's: those of other jobs of this machine do
# not count. A rule keeps whatever else this machine does.
job=$(dirname "$0")/../../daemon/coll-job
if [ "$(nproc)" -lt 2 ] || [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP one CPU, or not root: nothing of others can be moved"
	exit 0
fi
work=$(mktemp -d)
chmod 755 "$work"
pids= group= groups= percent=
thaw() { :; }	# for who freezes
cleanup() {
	thaw
	kill -9 $pids
	wait
	for made in $group $groups; do
		soon 3 rmdir "$made"		# of ranks that were killed, too
	done
	rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

. "$(dirname "$0")/../lib/cpus.sh"
name=$(basename "$0" .t)$$
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
policy() {	# LINE ...: what every one has first
	printf '%s\n' "housekeeping $first" "application $last" "keep comm=kept$$" "pin comm=*$$" "keep comm=*" "$@" >"$work/policy"
}
begin() {	# ARGUMENT ...: with the privileges that its service has
	: >"$work/said"
	setpriv --bounding-set=-all,+sys_nice,+net_admin,+dac_override,+sys_ptrace \
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
	sh -c "$in_front" "${procs:-/dev/null}" setsid "$@" taskset -c "$last" "$CAUSE" burn "$planted_name" 600 ${percent:-100} &
	planted=$!
	pids="$pids $planted"
	soon 10 sh -c "grep -qx '$planted_name' /proc/$planted/comm"
}
user=$((64000 + $$ % 500))
run() {		# [CAUSE RANK SECONDS FILE]: two ranks on the last CPU
	sh -c "$in_front" "${procs:-/dev/null}" setpriv --reuid=$user --regid=$user --clear-groups taskset \
		-c "$last" "$work/coll" run -q -n 2 --bind none --no-prefix -- "$CAUSE" ${*:-busy 1 600} >"$work/ranks" 2>&1 &
	ranks=$!
	pids="$pids $ranks"
}
stop_ranks() {
	kill "$ranks" 2>/dev/null
	wait "$ranks" 2>/dev/null
}
