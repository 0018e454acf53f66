#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Groups, and many runs in flight.
build=${BUILD:-build}
count=0

for ranks in 1 2 3 5 8; do
	for engine in uring epoll; do
		count=$((count + 1))
		if said=$(COLL_ENGINE=$engine COLL_DEADLINE=30s "$build/coll" run -t 100 -n $ranks -- \
			"$build/tests/multi/groups" 2>&1); then
			echo "ok $count - $ranks ranks, $engine"
		else
			echo "not ok $count - $ranks ranks, $engine"
			echo "$said" | head -20 | sed 's/^/# /'
		fi
	done
done

# Links of all groups to a process share its connection.
for what in "many 300" limit alone order "memory sender" "memory receiver"; do
	for engine in uring epoll; do
		case $what in memory*|order) ranks=2 ;; *) ranks=4 ;; esac
		count=$((count + 1))
		# shellcheck disable=SC2086
		if said=$(COLL_ENGINE=$engine "$build/coll" run -t 100 -n $ranks -- \
			"$build/tests/multi/shared_connections" $what 2>&1); then
			echo "ok $count - shared connections: $what, $engine"
		else
			echo "not ok $count - shared connections: $what, $engine"
			echo "$said" | head -20 | sed 's/^/# /'
		fi
	done
done

# Ten thousand groups of eight ranks, with a hundred descriptors; fewer under a sanitizer.
groups=10000
[ -z "$COLL_TEST_LITTLE" ] || groups=500
count=$((count + 1))
if said=$(ulimit -n 100; "$build/coll" run -t 300 -n 8 -- \
	"$build/tests/multi/shared_connections" many $groups 2>&1); then
	echo "ok $count - $said"
else
	echo "not ok $count - $groups groups of 8 ranks"
	echo "$said" | head -20 | sed 's/^/# /'
fi
echo "1..$count"
