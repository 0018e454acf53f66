#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Injected faults and noise: results stay right, times show the noise, redundancy tolerates
# it, and errors name the lost rank.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {		# EXPECTED-STATUS ARGUMENT ...
	expected=$1
	shift
	exits "$expected" "$COLL" "$@"
}

# The figure of this algorithm in the CSV; 1 is the mean, 2 the median, 4 p99.
figure() {	# ALGORITHM NUMBER
	sed 's/"[^"]*",//' "$work/out" |
		awk -F, -v algo="\"$1\"" -v n="$2" '$5 == algo { print $(7 + n) }'
}

below() {	# A B FACTOR: A < B * FACTOR
	awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a != "" && b != "" && a < b * f) }'
}

# ---- short reads and writes, late messages: everything stays right --------------------

for engine in uring epoll; do
	for inject in short:probability=0.5 'short:probability=0.3;link:poisson:rate=200,duration=1ms'
	do
		for ranks in 2 5; do
			COLL_INJECT="$inject" COLL_ENGINE=$engine COLL_DEADLINE=60s \
				run 0 run -t 280 -n $ranks -- "$BUILD/tests/multi/every_collective" 4 1
			result $? "every collective, $ranks ranks, $engine, $inject"
		done
	done
	run 0 bench allreduce -n 5 --engine $engine --size 8,8K,256K --iterations 12 --inject \
		'short:probability=0.5' --algo butterfly,butterfly-redundant:T=2,rabenseifner,ring
	result $? "allreduce in pieces, $engine"
	COLL_INJECT='link:periodic:period=10ms,duration=8ms,phase=same,model=occupancy' \
		COLL_ENGINE=$engine run 0 run -t 200 -n 3 -- "$BUILD/tests/multi/poll_on_fd"
	result $? "late messages wake who sleeps on coll_fd(), $engine"
	for mode in late slow absent linked canceled closed; do
		COLL_ENGINE=$engine run 0 run -t 60 -n 3 -- "$BUILD/tests/multi/poll_on_fd" $mode
		result $? "coll_fd() wakes: $mode, $engine"
	done
done

# ---- noise costs what it should ----------------------------------------------------------

# Rank 0 stands still every other 10 ms: of the calls that go through such an event
# most of 10 ms is seen, and one in two of the time is.
for how in sleep spin; do
	run 0 bench allreduce -n 2 --algo butterfly --time 1 --csv --inject \
		"os:periodic:period=20ms,duration=10ms,how=$how,rank=0" &&
		below 5000 "$(figure butterfly 6)" 1
	result $? "OS noise, $how: 10 ms stops are seen"
done

printf '# start duration\n0 9000000\n20000000 9000000\n' >"$work/trace"
run 0 bench allreduce -n 2 --algo butterfly --time 1 --csv \
	--inject "os:replay:$work/trace" && below 5000 "$(figure butterfly 6)" 1
result $? "OS noise from a trace"

# A call that meets an event waits for most of 18 ms; between two there are many.
run 0 bench bcast -n 2 --algo linear --time 1 --csv \
	--inject link:periodic:period=20ms,duration=18ms,model=occupancy &&
	below 5000 "$(figure linear 6)" 1
result $? "link noise delays messages"

# Mean and p99 of three redundant exchanges are below the butterfly's. The noise is
# strong, for machines have their own; the factor is generous for the same reason.
redundancy_helps() {
	run 0 bench allreduce -n 8 --size 8 --time 3 --csv --seed "$1" \
		--algo butterfly,butterfly-redundant:T=1,butterfly-redundant:T=3 \
		--inject link:poisson:rate=100,duration=5ms || return 1
	b=$(figure butterfly 1) one=$(figure butterfly-redundant:T=1 1)
	three=$(figure butterfly-redundant:T=3 1)
	echo "# mean: butterfly $b us, T=1 $one us, T=3 $three us"
	below "$one" "$b" 0.9 && below "$three" "$b" 0.85
}
redundancy_helps 1 || redundancy_helps 2 || redundancy_helps 3 || redundancy_helps 4
result $? "with link noise redundant butterflies have lower means"

# ---- who is lost is named, nothing hangs -----------------------------------------------------

for engine in uring epoll; do
	run 1 bench allreduce -n 4 --algo ring --time 3 --engine $engine \
		--inject drop:after=20,rank=1 && found 'rank [0-3]: .*a rank was lost: rank [0-3]' err
	result $? "a dropped connection, $engine"

	# The launcher and the survivors see it, in either order.
	timeout 60 "$COLL" bench allreduce -n 4 --algo ring --time 3 --engine $engine \
		--inject kill:rank=2,after=30 >"$work/out" 2>"$work/err"
	status=$?
	{ [ $status -eq 137 ] && found 'rank 2 was killed by signal 9' err; } ||
		{ [ $status -eq 1 ] && found 'a rank was lost: rank 2' err; }
	result $? "a killed rank, $engine"

	COLL_DEADLINE=5s run 1 bench allreduce -n 4 --algo ring --time 30 --engine $engine \
		--inject stop:rank=2,after=30 && found 'deadline passed: rank 2' err
	result $? "a stopped rank, $engine"
done

# ---- what is wrong is said --------------------------------------------------------------

COLL_INJECT=gremlins run 1 run -n 2 -- "$BUILD/tests/multi/poll_on_fd" &&
	found "inject 'gremlins': valid: os:periodic.*\(from COLL_INJECT\)" err
result $? "a wrong COLL_INJECT"

tap_end
