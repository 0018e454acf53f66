#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Connections of unauthenticated peers are refused, logged, and harm nothing.
build=${BUILD:-build}
count=0

for engine in uring epoll; do
	said=$(COLL_ENGINE=$engine "$build/coll" run -t 60 -n 4 -- "$build/tests/multi/unauthenticated_peers" 2>&1)
	status=$?
	count=$((count + 1))
	if [ $status -eq 0 ]; then
		echo "ok $count - a job among unauthenticated peers computes on, $engine"
	else
		echo "not ok $count - a job among unauthenticated peers computes on, $engine"
		echo "$said" | grep -v refused | head -20 | sed 's/^/# /'
	fi
	for reason in "it has no proof of this job's secret" "it closed before its hello"; do
		count=$((count + 1))
		if echo "$said" | grep -q "refused a connection from .*127.0.0.1: $reason"; then
			echo "ok $count - refused: $reason, $engine"
		else
			echo "not ok $count - refused: $reason, $engine"
		fi
	done
done
echo "1..$count"
