#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks that leave early, and ranks that can make no connection.
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
ranks=4

start() {	# ENGINE PROGRAM ARGUMENT
	COLL_ENGINE=$1 "$build/coll" run -q -k -n $ranks -t 30 --no-prefix -- \
		"$build/tests/multi/$2" "$3" >"$work/$1.$2.$3" 2>&1 &
}

finish() {	# ENGINE PROGRAM ARGUMENT WORD
	count=$((count + 1))
	if [ "$(grep -c "^$4\$" "$work/$1.$2.$3")" -eq $ranks ]; then
		echo "ok $count - $2 $3, $1"
	else
		echo "not ok $count - $2 $3, $1"
		head -20 "$work/$1.$2.$3" | sed 's/^/# /'
	fi
}

for engine in uring epoll; do
	for what in early queued ahead unheard; do
		start $engine early_exit $what
	done
	for short in 0 1 3; do
		start $engine descriptors_exhausted $short
	done
done
wait
for engine in uring epoll; do
	for what in early queued ahead unheard; do
		finish $engine early_exit $what left
	done
	for short in 0 1 3; do
		finish $engine descriptors_exhausted $short told
	done
done
echo "1..$count"
