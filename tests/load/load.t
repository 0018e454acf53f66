#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Many ranks, many groups and many calls: results are right and nothing grows. COLL_TEST_LONG=1
# has 256 ranks, 10^4 groups and 10^6 calls, which takes about an hour on two cores.
. "$(dirname "$0")/../lib/tap.sh"
load=$BUILD/tests/load/load
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# job RANKS LINKS ENGINE WHAT...: LINKS is memory or sockets.
job() {
	ranks=$1 links=$2 engine=$3
	shift 3
	[ "$links" = memory ] && COLL_MEMORY=auto || COLL_MEMORY=off
	LOAD_SINCE=$(date +%s.%N)
	export COLL_MEMORY LOAD_SINCE
	COLL_ENGINE=$engine timeout 1000 "$COLL" run -q -t 900 -n "$ranks" -- "$load" "$@" >"$work/out" 2>&1
}

# holds WHAT RANKS LINKS ENGINE LOAD...: and says what it took.
holds() {
	tap_name=$1
	shift
	ok "$tap_name: $1 ranks, $2, $3" job "$@"
	tail -20 "$work/out" | sed "s/^/# $2 $3: /"
}

if [ -n "$COLL_TEST_LONG" ]; then
	many='128 256' counts='1 100' groups=10000 members=8 calls=1000000
	pairs='memory:uring memory:epoll sockets:uring sockets:epoll'
else
	many=48 counts='1 100' groups=500 members=4 calls=20000
	pairs='memory:uring sockets:epoll'
fi
[ -z "$COLL_TEST_LITTLE" ] || many=16 groups=100 calls=6000

for pair in $pairs; do
	links=${pair%:*} engine=${pair#*:}
	for ranks in $many; do
		# shellcheck disable=SC2086
		holds "every collective, every form" "$ranks" "$links" "$engine" ranks $counts
	done
	holds "$groups groups at once" $members "$links" "$engine" together $groups
	holds "$groups groups in turn" $members "$links" "$engine" turns $groups
	holds "$calls calls" 4 "$links" "$engine" calls $calls
done

if [ -z "$COLL_TEST_LITTLE$SANITIZE" ]; then
	holds "start and barrier" 256 memory uring ranks
	holds "start and barrier" 256 sockets uring ranks
fi

# The checks themselves: bytes and descriptors that are lost.
LOAD_LEAK=40000 job 2 memory uring calls 20000
like "memory that is lost with each thousandth call is found" "$(cat "$work/out")" \
	'(the heap in use|VmData) grew from [0-9]+ to [0-9]+ KiB'
LOAD_LEAK=fd job 2 memory uring calls 20000
like "and so is a descriptor" "$(cat "$work/out")" 'descriptors grew from [0-9]+ to [0-9]+'
LOAD_LEAK=shared job 2 memory uring calls 20000
like "and so is shared memory" "$(cat "$work/out")" 'RssShmem grew from [0-9]+ to [0-9]+ KiB'
tap_end
