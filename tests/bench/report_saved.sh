#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What coll report says would be saved without a cause, against the same job without it. Jobs of 2
# ranks, each as long as SECONDS_EACH (6) says; a line a cause. Then what it says of remedies: of stopping a
# program, of T among 8 ranks, of leaving out one of two nodes and of co-scheduling them (host names on this machine). Where a cgroup can be made (as root)
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

ranks="-n 2 --bind core"
run() {	# NAME OPTION ... -- ARGUMENTS
	name=$1
	shift
	timeout -k 1 60 "$COLL" run -q $ranks --no-prefix --report "$work/$name" "$@" \
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

# What a remedy would save, and what the job took with it.
remedy() {	# NAME BASE REMEDY
	jq -r --slurpfile base "$work/$2.json" --arg name "$1" --arg remedy "$3" '
		def percent: 1000 * . | round / 10;
		.seconds as $all | (.remedy[] | select(.remedy == $remedy)) |
		"\($name): \(.what): predicted \(.saved_seconds / $all | percent) %, " +
		"\(.saved_between // [] | map(. / $all | percent | tostring) | join(" to "))"' "$work/$1.json"
	jq -r --slurpfile base "$work/$2.json" '
		"	measured \(1000 * (1 - ($base[0].seconds / $base[0].calls) / (.seconds / .calls)) | round / 10) %"
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
remedy daemon busy stop

ranks="-n 8 --bind none"
for algorithm in butterfly butterfly-relayed:T=2,relays=1; do
	run "${algorithm%%:*}" -e COLL_ALLREDUCE=$algorithm -e COLL_INJECT=link:poisson:rate=5,duration=20ms \
		-- "$BUILD/tests/multi/late_rank" 2000 -1 0
done
remedy butterfly butterfly-relayed T

if unshare -u true 2>/dev/null; then
	printf '#!/bin/sh\nhost=$1\nshift\nexec unshare -u sh -c "hostname $host; $*"\n' >"$work/shell"
	chmod +x "$work/shell"
	ranks="--hosts na:2,nb:2 --bind none --ssh $work/shell"
	late=$(realpath "$BUILD/tests/multi/late_rank")
	run nodes -- "$late" 600 3 5
	ranks="--hosts na:2 --bind none --ssh $work/shell"
	run node -- "$late" 600 -1 0
	remedy nodes node leave-out
	ranks="--hosts na:1,nb:1 --bind none --ssh $work/shell"
	for phase in random same; do
		run $phase -e COLL_INJECT=os:periodic:period=20ms,duration=6ms,phase=$phase -- "$late" 2000 -1 0
	done
	remedy random same co-schedule
fi
