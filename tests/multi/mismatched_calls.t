#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks that call with different arguments, and groups that are revoked: all ranks get an error.
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
ranks=4

whats="count type op root collective algorithm revoke cancel"
for what in $whats; do
	for engine in uring epoll; do
		COLL_ENGINE=$engine "$build/coll" run -q -k -n $ranks -t 150 --no-prefix -- \
			"$build/tests/multi/mismatched_calls" $what 2 >"$work/$what.$engine" 2>&1 &
	done
done
wait
for what in $whats; do
	for engine in uring epoll; do
		count=$((count + 1))
		if [ "$(grep -c '^told$' "$work/$what.$engine")" -eq $ranks ]; then
			echo "ok $count - $what, $engine"
		else
			echo "not ok $count - $what, $engine"
			sed 's/^/# /' "$work/$what.$engine"
		fi
	done
done
echo "1..$count"
