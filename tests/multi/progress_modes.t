#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The tests that others run with progress=call, here with thread, helper and auto: a part of
# each, or all with COLL_TEST_ALL=1.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
every=60
[ -n "$COLL_TEST_ALL" ] && every=1

run() {		# RANKS PROGRAM [ARGUMENT ...]
	ranks=$1 program=$2
	shift 2
	COLL_DEADLINE=${deadline:-30s} timeout -s KILL 110 "$COLL" run -q -k -t 100 --no-prefix \
		-n "$ranks" -- "$BUILD/tests/multi/$program" "$@" >"$work/out" 2>&1
}

survive() {	# ENGINE WAY COLLECTIVE
	COLL_MEMORY=off COLL_ENGINE=$1 run 5 rank_failures "$3" "$2" 3
	[ "$(grep -c '^survived$' "$work/out")" -eq 4 ]
}

for COLL_PROGRESS in thread helper auto; do
	export COLL_PROGRESS
	for engine in uring epoll; do
		for ranks in 1 3 8; do
			COLL_ENGINE=$engine run $ranks every_collective $every $((tap_count + 1))
			result $? "every collective, $ranks ranks, $engine, $COLL_PROGRESS"
		done
		COLL_ENGINE=$engine run 3 groups
		result $? "groups, 3 ranks, $engine, $COLL_PROGRESS"
		survive $engine kill allreduce
		result $? "kill in allreduce, $engine, $COLL_PROGRESS"
		survive $engine stop alltoall
		result $? "stop in alltoall, $engine, $COLL_PROGRESS"
		survive $engine link bcast
		result $? "a cut link in bcast, $engine, $COLL_PROGRESS"
	done
	[ "$COLL_PROGRESS" = auto ] || run 3 progress_without_calls	# which auto learns first
	result $? "a run that nobody attends to, $COLL_PROGRESS"
	COLL_PROGRESS_CPUS=0 run 1 groups
	result $? "on a chosen CPU, $COLL_PROGRESS"
	COLL_PROGRESS_CPUS=99999 run 1 groups
	grep -q 'progress_cpus.*CPUs as' "$work/out"
	result $? "no such CPU, $COLL_PROGRESS"
	COLL_PROGRESS_PRIORITY=nice:5 run 1 groups
	result $? "less urgent, $COLL_PROGRESS"
	COLL_PROGRESS_PRIORITY=fifo:100 run 1 groups
	grep -q "progress_priority.*fifo:1 to fifo:99" "$work/out"
	result $? "no such priority, $COLL_PROGRESS"
done
# Who may not be more urgent is told so, and what it takes.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work"
	cp "$COLL" "$BUILD/tests/multi/groups" "$work/"
	(
		ulimit -r 0
		COLL_PROGRESS=thread COLL_PROGRESS_PRIORITY=fifo:1 setpriv --reuid=65534 --regid=65534 \
			--clear-groups --bounding-set=-all --inh-caps=-all \
			"$work/coll" run -n 1 -- "$work/groups" >"$work/out" 2>&1
	)
	grep -q "option progress_priority: 'fifo:1': .*CAP_SYS_NICE" "$work/out"
	result $? "a priority without the right to it"
fi
# Without the module that mode says so; with it, tests/vm has the same as above.
if [ ! -e /dev/coll ]; then
	COLL_PROGRESS=kernel run 2 groups
	grep -q "option progress: 'kernel' is not possible: /dev/coll: coll.ko is not loaded" "$work/out"
	result $? "progress in the kernel without the module"
fi
tap_end
