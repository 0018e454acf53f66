#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Buffers of coll_alloc(): ranks of a node read long messages where they have them mapped, also where
# none may read in another process, and the results are right; every collective with such buffers.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# maps COMPARISON COMMAND...: a run of COMMAND, a benchmark that checks its results. What each run and
# rank exposes in regions is compared with 0.
maps() {
	compare=$1
	shift
	timeout 120 "$@" >"$work/out" 2>"$work/err" || { sed 's/^/# /' "$work/err"; return 1; }
	bytes=$(sed -n 's/.*"mapped_bytes": \([0-9]*\).*/\1/p' "$work/out" | sort -n | head -1)
	grep -q '"wrong": 0' "$work/out" && [ -n "$bytes" ] && [ "$bytes" $compare 0 ]
}

# The first messages of a length go both ways by turns: then comes what is faster here.
bench() {	# RANKS OPTION ...
	ranks=$1
	shift
	echo "$COLL" bench allreduce -n "$ranks" --algo rabenseifner --size 1500K --warmup 0 --iterations 4 \
		--buffers alloc --counters --json "$@"
}

for engine in uring epoll; do
	ok "2 ranks, $engine: read where they are mapped" maps -gt $(bench 2 --engine $engine)
	ok "5 ranks, $engine: the same" maps -gt $(bench 5 --engine $engine)
	ok "memory=copy, $engine: through the ring" maps -eq env COLL_MEMORY=copy $(bench 2 --engine $engine)
	ok "memory=off, $engine: by TCP" maps -eq env COLL_MEMORY=off $(bench 2 --engine $engine)
	ok "short transfers, $engine" maps -ge env COLL_INJECT=short:probability=0.3 $(bench 3 --engine $engine)
	ok "nobody may read in another, $engine: as before" \
		maps -gt "$BUILD/tests/multi/without_call" process_vm_readv $(bench 4 --engine $engine)
done
for progress in thread auto; do
	ok "progress=$progress" maps -gt env COLL_PROGRESS=$progress $(bench 3)
done
ok "no file may have so many bytes: ordinary memory" maps -eq sh -c 'ulimit -f 2048; exec "$@"' sh $(bench 3)
for collective in bcast allgather alltoall reduce_scatter; do
	ok "$collective" maps -gt "$COLL" bench $collective -n 3 --size 600K --iterations 12 --buffers alloc \
		--counters --json
done

# Every collective, in all forms. Ranks that share cores send what is longer than a ring in this way.
every() {	# RANKS ENGINE EVERY [PROGRESS]
	COLL_TEST_ALLOC=1 COLL_ENGINE=$2 COLL_PROGRESS=${4:-call} COLL_DEADLINE=30s timeout 170 \
		"$COLL" run -t 160 -n "$1" -- "$BUILD/tests/multi/every_collective" "$3" 2 >"$work/out" 2>&1 ||
		{ head -20 "$work/out" | sed 's/^/# /'; return 1; }
}
part=5
[ -z "$COLL_TEST_ALL" ] || part=1
for engine in uring epoll; do
	ok "every collective, 2 ranks, $engine" every 2 $engine $part
	ok "every collective, 5 ranks, $engine" every 5 $engine $((2 * part))
done
ok "every collective, 3 ranks, progress=thread" every 3 uring $((4 * part)) thread

# A rank dies or stops while others read in its memory, and use what they read there.
survive() {	# WAY COLLECTIVE
	COLL_TEST_ALLOC=1 timeout -s KILL 60 "$COLL" run -q -k -n 5 -t 50 --no-prefix -- \
		"$BUILD/tests/multi/rank_failures" "$2" "$1" 3 "" 100000 >"$work/out" 2>"$work/err"
	[ "$(grep -c '^survived$' "$work/out")" -eq 4 ] || { sed 's/^/# /' "$work/out"; return 1; }
}
for way in kill stop; do
	for collective in allreduce bcast alltoall; do
		ok "$way in $collective of 100000 elements" survive $way $collective
	done
done
tap_end
