#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Every collective in every way, on both engines, then a part of it again with short
# reads and writes. The more ranks, the fewer of the test cases each run takes;
# COLL_TEST_ALL=1 takes all, COLL_TEST_LITTLE=1 a twentieth.
build=${BUILD:-build}
count=0
patience=170
[ -z "$COLL_TEST_ALL" ] || patience=1700

every() {	# RANKS: one test case in how many
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

play() {	# RANKS ENGINE EVERY WHAT
	count=$((count + 1))
	if said=$(COLL_ENGINE=$2 COLL_DEADLINE=30s "$build/coll" run -t $patience -n "$1" -- \
		"$build/tests/multi/every_collective" "$3" $count 2>&1); then
		echo "ok $count - $1 ranks, $2$4"
	else
		echo "not ok $count - $1 ranks, $2$4"
	fi
	echo "$said" | head -20 | sed 's/^/# /'
}

for ranks in 1 2 3 4 5 7 8 13 16; do
	for engine in uring epoll; do
		play $ranks $engine "$(every $ranks)" ""
	done
done

export COLL_INJECT=short:probability=0.3
for ranks in 2 3 4 5 7 8 13 16; do
	for engine in uring epoll; do
		play $ranks $engine $((10 * $(every $ranks))) ", in pieces"
	done
done
echo "1..$count"
