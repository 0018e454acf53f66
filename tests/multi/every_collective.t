#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Every collective in every form has the reference's result on both engines; a part of the
# test cases again with levels, and with short reads and writes. Jobs of more than 5 ranks run a half or a
# quarter of the test cases; COLL_TEST_ALL=1 runs all, COLL_TEST_LITTLE=1 a twentieth.
build=${BUILD:-build}
count=0
patience=170
[ -z "$COLL_TEST_ALL" ] || patience=1700

every() {	# RANKS: runs one test case of so many
	if [ -n "$COLL_TEST_LITTLE" ]; then
		echo 20
	elif [ -n "$COLL_TEST_ALL" ] || [ "$1" -le 5 ]; then
		echo 1
	elif [ "$1" -le 8 ]; then
		echo 2
	else
		echo 4
	fi
}

run() {	# RANKS ENGINE EVERY WHAT
	count=$((count + 1))
	if said=$(COLL_ENGINE=$2 COLL_DEADLINE=30s "$build/coll" run -t $patience -n "$1" -- \
		"$build/tests/multi/every_collective" "$3" $count 2>&1); then
		echo "ok $count - every collective is right with $1 ranks on $2$4"
	else
		echo "not ok $count - every collective is right with $1 ranks on $2$4"
	fi
	echo "$said" | head -20 | sed 's/^/# /'
}

for ranks in 1 2 3 4 5 7 8 13 16; do
	for engine in uring epoll; do
		run $ranks $engine "$(every $ranks)" ""
	done
done

export COLL_LEVELS=3+
for ranks in 5 8; do
	for engine in uring epoll; do
		run $ranks $engine $((4 * $(every $ranks))) ", on nodes of 3"
	done
done
unset COLL_LEVELS

export COLL_INJECT=short:probability=0.3
for ranks in 2 3 4 5 7 8 13 16; do
	for engine in uring epoll; do
		run $ranks $engine $((10 * $(every $ranks))) ", in short reads and writes"
	done
done
echo "1..$count"
