#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# allreduce replicas on nodes of 3 ranks and one of 2, which are all this machine: results are right on both
# engines, through memory and sockets, in each progress mode; wrong options are refused with what is valid.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COLL_LEVELS=3+ COLL_DEADLINE=60s

bench() {	# ALGORITHMS
	timeout -s KILL 110 "$COLL" run -q -k -t 100 --no-prefix -n 8 -- "$COLL" bench allreduce \
		--algo "$1" --size 0,8,100K --iterations 20 --warmup 1 >"$work/out" 2>&1 ||
		{ sed 's/^/# /' "$work/out"; return 1; }
}

several=replicas,replicas:replicas=1,replicas:replicas=2,replicas:replicas=16
for COLL_ENGINE in uring epoll; do
	export COLL_ENGINE
	for COLL_MEMORY in auto off; do
		export COLL_MEMORY
		ok "$COLL_ENGINE, memory $COLL_MEMORY: results are right" bench $several
	done
	unset COLL_MEMORY
	for COLL_PROGRESS in thread helper; do
		export COLL_PROGRESS
		ok "$COLL_ENGINE, progress $COLL_PROGRESS: results are right" bench $several
	done
	unset COLL_PROGRESS
done
unset COLL_ENGINE

refused() {	# ALGORITHM WORDS
	! bench "$1" >"$work/said" && grep -q "$2" "$work/out"
}
ok "more than 16 replicas are refused" refused replicas:replicas=17 'must be 1 to 16'
ok "no replica is refused" refused replicas:replicas=0 'a whole number from 1'
COLL_LEVELS=flat
ok "without nodes they are refused" refused replicas 'the ranks have no levels'
tap_end
