# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Causes to plant for coll report, after tap.sh. $work is a folder; causes_end at the end. $second is the second CPU
# of this shell, "" if it has one. Planted for SECONDS_EACH seconds, and what the planting takes.
CAUSE=$BUILD/tests/multi/report_cause
burning=
groups=
second=$(taskset -cp $$ 2>/dev/null | sed 's/.*: //' | tr ',' '\n' | sed 's/-/ /' | while read -r a b; do
	seq "$a" "${b:-$a}"; done | sed -n 2p)

# What was planted has ended, and its cgroups are gone.
causes_end() {
	kill $burning 2>/dev/null
	wait
	for group in $groups; do
		rmdir "$group"
	done
}

# make_cgroup NAME: with most of the machine for itself; $group is its folder, of the version of
# cgroups that has the controller.
make_cgroup() {
	for folder in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpu \
		/sys/fs/cgroup/cpu,cpuacct; do
		group=$folder/coll-report-$1-$$
		[ -f $folder/cpu.shares ] ||
			grep -qw cpu $folder/cgroup.subtree_control 2>/dev/null || continue
		mkdir "$group" 2>/dev/null || continue
		groups="$groups $group"
		if [ -f "$group/cpu.weight" ]; then
			echo 10000 >"$group/cpu.weight"
		else
			echo 262144 >"$group/cpu.shares"
		fi && return
	done
	return 1
}
limit_cgroup() {	# to a fifth of a CPU
	if [ -f "$group/cpu.max" ]; then
		echo "20000 100000" >"$group/cpu.max"
	else
		echo 20000 >"$group/cpu.cfs_quota_us"
	fi 2>/dev/null
}
# Where it can be, the ranks and what is planted are ahead of what else the machine does.
make_cgroup ahead && ahead=$group/cgroup.procs || ahead=/dev/null
in_front() {
	sh -c 'echo $$ >"$0"; exec "$@"' "$ahead" "$@"
}

# With as much of the machine as the kernel's own threads have, and as all others together.
beside=/dev/null
if make_cgroup beside; then
	beside=$group/cgroup.procs
	[ -f "$group/cpu.weight" ] && echo 100 >"$group/cpu.weight" || echo 1024 >"$group/cpu.shares"
fi
beside() {
	sh -c 'echo $$ >"$0"; exec "$@"' "$beside" "$@"
}

burn() {	# NAME: three of them on the second CPU
	for i in 1 2 3; do
		sh -c 'echo $$ >"$0"; exec "$@"' "$ahead" taskset -c "$second" \
			"$CAUSE" burn "$1" $((SECONDS_EACH + 4)) &
		burning="$burning $!"
	done
}
end_burning() {
	kill $burning 2>/dev/null
	wait $burning 2>/dev/null
	burning=
}

# Softirqs of the second CPU. False: why is in $work/no_storm.
begin_storm() {
	sh -c 'echo $$ >"$0"; exec "$@"' "$ahead" "$BUILD/tests/multi/softirq_storm" "$second" \
		$((SECONDS_EACH + 6)) 2>"$work/no_storm" &
	burning=$!
	sleep 3		# until it has found its measure
	kill -0 $burning 2>/dev/null && return
	burning=
	return 1
}

stop_and_go() {	# what has its pid in this file, again and again
	soon 10 test -s "$1" || return
	while kill -STOP "$(cat "$1")" 2>/dev/null; do
		sleep 0.3
		kill -CONT "$(cat "$1")" 2>/dev/null
		sleep 0.2
	done
}
