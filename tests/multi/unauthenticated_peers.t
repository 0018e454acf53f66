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
	count=$((count + 1))
	told=$(echo "$said" | grep -Ec "rank [0-3]: refused a connection from .*127.0.0.1: it .* \(told once\)")
	if [ "$told" -eq 4 ] && [ "$(echo "$said" | grep -c refused)" -eq 4 ]; then
		echo "ok $count - each rank says so once, $engine"
	else
		echo "not ok $count - each rank says so once, $engine"
		echo "$said" | grep refused | head -20 | sed 's/^/# /'
	fi
	count=$((count + 1))
	if said=$(COLL_ENGINE=$engine "$build/coll" run -t 60 -n 3 -- \
		"$build/tests/multi/silent_connections" 2>&1); then
		echo "ok $count - more silent connections than descriptors stop nobody, $engine"
	else
		echo "not ok $count - more silent connections than descriptors stop nobody, $engine"
		echo "$said" | head -20 | sed 's/^/# /'
	fi
done
echo "1..$count"
