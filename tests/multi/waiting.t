#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The option wait: ranks that sleep soon are woken by whoever has something for them, in every kind
# of progress, through memory and over TCP; also beside processes that spin on the same cores.
# COLL_TEST_ALL=1: all test cases of every_collective.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
spinning=
trap 'kill $spinning 2>/dev/null; rm -rf "$work"' EXIT
every=30
[ -n "$COLL_TEST_ALL" ] && every=1

run() {		# RANKS PROGRAM [ARGUMENT ...]
	ranks=$1 program=$2
	shift 2
	COLL_DEADLINE=30s timeout -s KILL 110 "$COLL" run -q -k -t 100 --no-prefix \
		-n "$ranks" -- "$BUILD/tests/multi/$program" "$@" >"$work/out" 2>&1
}

bench() {	# RANKS
	timeout 110 "$COLL" bench allreduce -n "$1" --size 8 --iterations 200 --json \
		>"$work/out" 2>&1 && grep -q '"wrong": 0' "$work/out"
}

export COLL_ENGINE COLL_WAIT COLL_PROGRESS COLL_MEMORY
for COLL_ENGINE in uring epoll; do
	for COLL_WAIT in sleep yield; do
		for COLL_MEMORY in auto off; do
			COLL_PROGRESS=call
			for ranks in 2 5; do
				run $ranks every_collective $every $((tap_count + 1))
				result $? "every collective, $ranks ranks, $COLL_ENGINE, $COLL_WAIT, memory $COLL_MEMORY"
			done
		done
	done
	COLL_WAIT=sleep COLL_MEMORY=auto
	for COLL_PROGRESS in thread helper auto; do
		run 3 every_collective $every $((tap_count + 1))
		result $? "every collective, $COLL_ENGINE, sleep, progress $COLL_PROGRESS"
	done
	COLL_PROGRESS=call
	run 3 poll_on_fd
	result $? "a program that sleeps on the descriptor, $COLL_ENGINE, sleep"
done

# Ranks whose engines differ: some are woken by a bell, some by a byte.
cat >"$work/rank" <<-'EOF'
	#!/bin/sh
	[ $((COLL_RANK % 2)) = 1 ] && export COLL_ENGINE=epoll
	exec "$@"
EOF
chmod +x "$work/rank"
COLL_ENGINE=uring COLL_WAIT=sleep
COLL_DEADLINE=30s timeout -s KILL 110 "$COLL" run -q -k -t 100 --no-prefix -n 4 -- "$work/rank" \
	"$BUILD/tests/multi/every_collective" $every $((tap_count + 1)) >"$work/out" 2>&1
result $? "every collective, uring and epoll, sleep"
COLL_ENGINE=epoll COLL_DEADLINE=30s timeout -s KILL 110 "$COLL" run -q -k -t 100 --no-prefix -n 3 -- \
	"$BUILD/tests/multi/without_call" epoll_pwait2 "$BUILD/tests/multi/every_collective" $every \
	$((tap_count + 1)) >"$work/out" 2>&1
result $? "every collective, epoll_pwait2 forbidden, sleep"
COLL_SPIN=0 run 4 every_collective $every $((tap_count + 1))
result $? "every collective, without a look, sleep"

for core in $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//') ; do
	taskset -c "$core" sh -c 'while :; do :; done' &
	spinning="$spinning $!"
done
for COLL_ENGINE in uring epoll; do
	for COLL_WAIT in auto sleep; do
		bench 2
		result $? "beside a neighbour, $COLL_ENGINE, $COLL_WAIT"
	done
done
kill $spinning
spinning=

COLL_WAIT=now "$COLL" bench barrier -n 1 --iterations 1 >"$work/out" 2>&1
[ $? -ne 0 ] && grep -q "wait.*auto, yield or sleep" "$work/out"
result $? "no such way to wait"
tap_end
