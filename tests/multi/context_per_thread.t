#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Several contexts in several threads of each rank, by each way of progress.
build=${BUILD:-build}
count=0

for way in 1,call 4,call 2,thread 3,helper; do
	ranks=${way%,*} progress=${way#*,}
	for engine in uring epoll; do
		count=$((count + 1))
		if said=$(COLL_ENGINE=$engine COLL_PROGRESS=$progress COLL_DEADLINE=30s "$build/coll" run -t 100 -n $ranks -- \
			"$build/tests/multi/context_per_thread" 2>&1); then
			echo "ok $count - $ranks ranks, $engine, $progress"
		else
			echo "not ok $count - $ranks ranks, $engine, $progress"
			echo "$said" | head -60 | sed 's/^/# /'
		fi
	done
done
echo "1..$count"
