#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	[CAUSES="storm link ..."] tests/bench/report_saved.sh [causes]
#
# What coll report says would be saved without a cause, against the same job without it: a table with a row a
# cause; causes: no more than that. Jobs of 2 ranks, each as long as SECONDS_EACH (6) says, ROUNDS (3) of each, in turns
# with the same job without the cause; medians. Then what it says of remedies: of stopping a
# program, of T among 8 ranks, of leaving out one of two nodes and of co-scheduling them (host names on this machine). Where a cgroup can be made (as root)
# the jobs are ahead of what else the machine does.
# Exit code 1: a row is more than 20 % from what was measured. What is predicted is what the report says would be saved
# without that cause, on all ranks that have it at once.
. "${0%/*}/../lib/tap.sh"
SECONDS_EACH=${SECONDS_EACH:-6}
rounds=${ROUNDS:-3}
work=$(mktemp -d)
. "${0%/*}/../lib/causes.sh"
leave() {
	causes_end
	rm -rf "$work" "$BUILD/report_saved.$$"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM
[ -n "$second" ] || { echo "two CPUs are needed: nothing can be on the CPU of one rank alone" >&2; exit 1; }

ranks="-n 2 --bind core"
launcher=
front=in_front
run() {	# NAME OPTION ... -- ARGUMENTS
	name=$1
	shift
	$front timeout -k 1 60 $launcher "$COLL" run -q $ranks --no-prefix --report "$work/$name" "$@" \
		>/dev/null || exit
	"$COLL" report --json "$work/$name.flight" >"$work/$name.json"
}

# Whether CAUSES has it, or there is no such list.
wanted() {
	case " ${CAUSES:-$1} " in
	*" $1 "*) ;;
	*) false ;;
	esac
}

# row NAME BASE CAUSES: of the rounds $name.1 ... the medians; predicted is what would be saved without these causes.
out=0
row() {
	wanted "$1" || return
	for round in $(seq "$rounds"); do
		jq -r --slurpfile base "$work/$2.$round.json" '
			([.without[] | select(.cause | IN('"$3"')) | .saved_seconds] | add // 0) as $saved |
			"\([$saved / .seconds, 1] | min) " +
			"\(1 - ($base[0].seconds / $base[0].calls) / (.seconds / .calls)) \(.loss[0].cause)"' \
			"$work/$1.$round.json"
	done | awk -v name="$1" '
		function median(a, n,    i, k, t) {
			for (i = 2; i <= n; i++)
				for (k = i; k > 1 && a[k] < a[k - 1]; k--) {
					t = a[k]; a[k] = a[k - 1]; a[k - 1] = t
				}
			return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
		}
		{ predicted[NR] = $1; measured[NR] = $2; ratio[NR] = $2 > 0 ? $1 / $2 : 99; first[$3]++ }
		END {
			for (cause in first)
				if (!best || first[cause] > first[best])
					best = cause
			r = median(ratio, NR)
			good = r >= 0.8 && r <= 1.2
			printf "%-10s %-12s %10.1f %10.1f %6.2f (%.2f to %.2f)  %s\n", name, best, 100 * median(predicted, NR),
				100 * median(measured, NR), r, ratio[1], ratio[NR], good ? "yes" : "NO"
			exit !good
		}' || out=1
}
# pairs NAME BASE COMMAND ...: rounds, in each the base and then the job with the cause, by these functions.
pairs() {
	wanted "$1" || return
	for round in $(seq "$rounds"); do
		$2 "$2.$round"
		$1 "$1.$round"
	done
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

none() { run "$1" -- "$CAUSE" none 1 "$SECONDS_EACH"; }
busy() { run "$1" -- "$CAUSE" busy 1 "$SECONDS_EACH"; }
# Not in front: that would be in front of the kernel's thread for softirqs, too. But beside all others, as that is.
fixed() {
	front=beside
	run "$1" -- "$CAUSE" fixed 1 "$SECONDS_EACH"
	front=in_front
}
asleep() { run "$1" -- "$CAUSE" asleep 1 "$SECONDS_EACH"; }
work() { run "$1" -- "$CAUSE" work 1 "$SECONDS_EACH"; }
alternate() { run "$1" -- "$CAUSE" alternate 1 "$SECONDS_EACH"; }
disk() { run "$1" -- "$CAUSE" disk 1 "$SECONDS_EACH" "$PWD/$BUILD/report_saved.$$"; }
daemon() {
	burn backup
	busy "$1"
	end_burning
}
storm() {
	begin_storm || { cat "$work/no_storm" >&2; exit 1; }
	fixed "$1"
	end_burning
}
limit() { run "$1" -- "$CAUSE" limit 1 "$SECONDS_EACH" "$group/cgroup.procs"; }
stopped() {
	rm -f "$work/pid"
	stop_and_go "$work/pid" &
	burning=$!
	run "$1" -- "$CAUSE" pid 1 "$SECONDS_EACH" "$work/pid"
	end_burning
}
inject() {
	run "$1" -e COLL_INJECT=os:periodic:period=20ms,duration=12ms,rank=1 -- "$CAUSE" none 1 "$SECONDS_EACH"
}
link() {
	run "$1" -e COLL_INJECT=link:periodic:period=100ms,duration=80ms,model=occupancy,rank=1 -- \
		"$CAUSE" none 1 "$SECONDS_EACH"
}
shared() {
	ranks="-n 2 --bind none" launcher="taskset -c $second"
	busy "$1"
	ranks="-n 2 --bind core" launcher=
}

printf '%-10s %-12s %10s %10s %-21s  %s\n' planted "first cause" "predicted%" "measured%" "ratio" "within 20 %"
for cause in asleep work alternate disk; do
	pairs $cause none
done
row asleep none '"asleep"'
row work none '"work"'
row alternate none '"asleep"'
row disk none '"disk"'
rm -f "$BUILD/report_saved.$$"
pairs daemon busy
row daemon busy '"task"'
if [ "$(id -u)" = 0 ]; then
	pairs storm fixed
	row storm fixed '"interrupts"'
fi
if make_cgroup limit && limit_cgroup; then
	pairs limit busy
	row limit busy '"cpu-limit"'
fi
pairs stopped none
row stopped none '"stopped"'
pairs inject none
row inject none '"injected"'
pairs link none
row link none '"link"'
pairs shared busy
row shared busy '"shared-core"'
[ "$1" != causes ] || exit $out

remedy daemon.1 busy.1 stop
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
exit $out
