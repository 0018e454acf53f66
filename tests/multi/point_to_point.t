#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Messages between two ranks: content, order, credit, truncation, wake-ups, failures.
. "$(dirname "$0")/../lib/tap.sh"

job() {	# RANKS ENGINE PROGRESS [CASE]
	COLL_ENGINE=$2 COLL_PROGRESS=$3 COLL_DEADLINE=30s quiet "$COLL" run -t 100 -n "$1" -- \
		"$BUILD/tests/multi/point_to_point" $4
}

for engine in uring epoll; do
	for progress in call thread helper auto; do
		ok "3 ranks, $engine, progress by $progress" job 3 $engine $progress
	done
	for ranks in 1 2 5; do
		ok "$ranks ranks, $engine" job $ranks $engine call
	done
	ok "a message outlives its sender's leaving, $engine" job 4 $engine call leaves
done
for progress in call thread helper auto; do
	ok "a rank that is silent is named at the deadline, progress by $progress" \
		job 2 epoll $progress silent
done
ok "an engine that fails is told by tests of runs" job 2 epoll call engine-fails

for progress in call auto; do
	ok "a short message wakes its receiver, progress by $progress" job 2 uring $progress short
	for engine in uring epoll; do
		COLL_MEMORY=off ok "... by TCP, $engine" job 2 $engine $progress short
	done
done
ok "a message costs the same with many receives posted" job 2 epoll call posted
ok "many messages wait for a rank, and the node is looked at once" job 3 epoll call late

# The rank that ends without leaving is itself no failure of the job's other ranks.
dies() {	# ENGINE PROGRESS
	COLL_ENGINE=$1 COLL_PROGRESS=$2 COLL_DEADLINE=30s quiet "$COLL" run -t 100 -n 4 -- \
		"$BUILD/tests/multi/point_to_point" killed
}
for progress in call thread; do
	ok "a rank that dies is named, progress by $progress" dies uring $progress
done
COLL_INJECT=short:probability=0.3
export COLL_INJECT
for engine in uring epoll; do
	ok "3 ranks, $engine, in short reads and writes" job 3 $engine call
done
tap_end
