#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A rank that waits for another to connect is told when that will never be: with a deadline of
# 30 s within 3.
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

case_of() {	# start|finish WHAT TOLD ENGINE MEMORY PROGRESS
	output=$work/$2.$4.$5.$6
	if [ "$1" = start ]; then
		COLL_ENGINE=$4 COLL_MEMORY=$5 COLL_PROGRESS=$6 \
			"$build/coll" run -q -k -n 3 -t 40 --no-prefix -- \
			"$build/tests/multi/never_connected" "$2" >"$output" 2>&1 &
		return
	fi
	count=$((count + 1))
	if [ "$(grep -c '^told$' "$output")" -eq "$3" ]; then
		echo "ok $count - $2, engine $4, memory $5, progress $6"
	else
		echo "not ok $count - $2, engine $4, memory $5, progress $6"
		head -20 "$output" | sed 's/^/# /'
	fi
}

for step in start finish; do
	for how in 'uring auto call' 'epoll off call' 'epoll auto thread'; do
		# shellcheck disable=SC2086	# three words
		case_of $step dead 2 $how
		case_of $step failed 3 $how
		case_of $step freed 3 $how
		case_of $step late 3 $how
	done
	wait
done
echo "1..$count"
