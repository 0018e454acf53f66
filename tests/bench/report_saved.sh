#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What coll report says would be saved without a cause, against the same job without it. Jobs of 2
# ranks, each as long as SECONDS_EACH (6) says; a line a cause. Where a cgroup can be made (as root)
# the jobs are ahead of what else the machine does.
BUILD=${BUILD:-build}
COLL=$BUILD/coll
CAUSE=$BUILD/tests/multi/report_cause
seconds=${SECONDS_EACH:-6}
work=$(mktemp -d)
group=/sys/fs/cgroup/cpu/coll-report-saved-$$
leave() {
	[ ! -d "$group" ] || { echo $$ >"${group%/*}/cgroup.procs"; rmdir "$group"; }
	rm -rf "$work"
}
trap leave EXIT
if mkdir "$group" 2>/dev/null; then
	echo 262144 >"$group/cpu.shares"
	echo $$ >"$group/cgroup.procs"
fi

run() {	# NAME OPTION ... -- ARGUMENTS
	name=$1
	shift
	timeout -k 1 60 "$COLL" run -q -n 2 --bind core --no-prefix --report "$work/$name" "$@" \
		>/dev/null || exit
	"$COLL" report --json "$work/$name.flight" >"$work/$name.json"
}

# Without: all that rank 1 loses as late and without a core, which has one cause here.
compare() {	# NAME BASE
	jq -r --slurpfile base "$work/$2.json" --arg name "$1" '
		def percent: 1000 * . | round / 10;
		([.loss[] | select(.rank == 1 and (.kind | IN("late-rank", "no-core"))) |
		  .saved_seconds] | add) as $saved |
		"\($name): cause \(.loss[0].cause); saved, predicted \($saved / .seconds | percent) %, " +
		"measured \(1 - ($base[0].seconds / $base[0].calls) / (.seconds / .calls) | percent) %"
		' "$work/$1.json"
}

run none -- "$CAUSE" none 1 "$seconds"
run busy -- "$CAUSE" busy 1 "$seconds"
for cause in asleep work alternate disk; do
	run $cause -- "$CAUSE" $cause 1 "$seconds" "$PWD/$BUILD/report_saved.$$"
	compare $cause none
done
rm -f "$BUILD/report_saved.$$"
cpu=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | sed 's/-/ /' | while read -r a b; do
	seq "$a" "${b:-$a}"; done | sed -n 2p)
for i in 1 2 3; do
	taskset -c "$cpu" "$CAUSE" burn backup $((seconds + 1)) &
done
run daemon -- "$CAUSE" busy 1 "$seconds"
wait
compare daemon busy
