#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A rank dies, stops, is cut off, loses one connection or never calls, in the middle of each
# collective: every other rank gets an error in time that names it, and can leave.
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
ranks=5
victim=3

collectives="barrier bcast gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv \
	reduce allreduce reduce_scatter reduce_scatter_block scan exscan"

start() {	# ENGINE WAY COLLECTIVE [ALGORITHM]
	case $2 in	# connections of TCP are cut
	cut | link) memory=off ;;
	*) memory=auto ;;
	esac
	COLL_MEMORY=$memory COLL_ENGINE=$1 timeout -s KILL 60 \
		"$build/coll" run -q -k -n $ranks -t 30 --no-prefix -- \
		"$build/tests/multi/rank_failures" "$3" "$2" $victim $4 >"$work/$1.$2.$3.$4" 2>&1 &
}

finish() {	# ENGINE WAY COLLECTIVE [ALGORITHM]
	count=$((count + 1))
	said=$work/$1.$2.$3.$4
	if [ "$(grep -c '^survived$' "$said")" -eq $((ranks - 1)) ]; then
		echo "ok $count - $2 in $3${4:+ $4}, $1"
	else
		echo "not ok $count - $2 in $3${4:+ $4}, $1"
		head -20 "$said" | sed 's/^/# /'
	fi
}

for way in kill cut link stop; do
	for collective in $collectives; do
		for engine in uring epoll; do
			start $engine $way $collective
		done
		case $collective in
		scatter | allgatherv | allreduce | exscan)	# no more than that at once
			wait
		esac
	done
	for collective in $collectives; do
		for engine in uring epoll; do
			finish $engine $way $collective
		done
	done
done

for collective in barrier gather alltoall reduce; do
	start uring absent $collective
done
start epoll absent scan linear
start uring kill allreduce butterfly-redundant
start epoll kill allreduce ring
start uring stop bcast chain
wait
for collective in barrier gather alltoall reduce; do
	finish uring absent $collective
done
finish epoll absent scan linear
finish uring kill allreduce butterfly-redundant
finish epoll kill allreduce ring
finish uring stop bcast chain

count=$((count + 1))
# Another tree on this machine may run the same test.
left=$(for pid in $(pgrep -f "^$build/tests/multi/rank_failures "); do
	[ "$(readlink /proc/"$pid"/cwd)" = "$(pwd -P)" ] && echo "$pid"
done)
if [ -n "$left" ]; then
	echo "not ok $count - no process is left"
	echo "# $left"
else
	echo "ok $count - no process is left"
fi
# A child that lives on holds the connections of a killed rank.
for engine in uring epoll; do
	for when in "" early; do
		count=$((count + 1))
		# shellcheck disable=SC2086
		said=$(COLL_ENGINE=$engine "$build/coll" run -q -k -n 4 -t 30 --no-prefix -- \
			"$build/tests/multi/child_outlives_rank" $when 2>&1)
		if [ "$(echo "$said" | grep -c '^survived$')" -eq 3 ]; then
			echo "ok $count - a rank is killed whose child lives on, $engine $when"
		else
			echo "not ok $count - a rank is killed whose child lives on, $engine $when"
			echo "$said" | head -20 | sed 's/^/# /'
		fi
	done
done
echo "1..$count"
