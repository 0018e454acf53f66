#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# One publication, many readers: within a node a broadcast of a long message is copied once and read by all,
# with both engines and all ways to progress, whoever is the root; where links do not go through memory it
# goes the ordinary way. A reader that dies or stops fails the others in time, and they go on.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# publishes COMPARISON COMMAND...: a run of COMMAND, a benchmark that checks its results. What each run and
# rank publishes is compared with 0.
publishes() {
	compare=$1
	shift
	timeout 120 "$@" >"$work/out" 2>"$work/err" || { sed 's/^/# /' "$work/err"; return 1; }
	bytes=$(sed -n 's/.*"published_bytes": \([0-9]*\).*/\1/p' "$work/out" | sort -n | head -1)
	grep -q '"wrong": 0' "$work/out" && [ -n "$bytes" ] && [ "$bytes" $compare 0 ]
}

bench() {	# RANKS COLLECTIVE ALGORITHM SIZE OPTION ...
	ranks=$1 collective=$2 algorithm=$3 size=$4
	shift 4
	echo "$COLL" bench "$collective" -n "$ranks" --algo "$algorithm" --size "$size" --iterations 20 \
		--counters --json "$@"
}

for engine in uring epoll; do
	ok "bcast, 4 ranks, $engine" publishes -gt $(bench 4 bcast linear 300K --engine $engine)
	ok "a tree, 5 ranks, $engine" publishes -gt $(bench 5 bcast binomial 1M --engine $engine)
	ok "allgather, 3 ranks, $engine" publishes -gt $(bench 3 allgather one-shot 600K --engine $engine)
	ok "a long message is read where it is, $engine" publishes -eq $(bench 3 bcast linear 20M --engine $engine)
	ok "... or where that is forbidden published as far as slots go, $engine" publishes -gt \
		"$BUILD/tests/multi/without_call" process_vm_readv $(bench 3 bcast linear 20M --engine $engine)
	ok "memory=copy, $engine" publishes -eq env COLL_MEMORY=copy $(bench 4 bcast linear 300K --engine $engine)
	ok "memory=off, $engine" publishes -eq env COLL_MEMORY=off $(bench 4 bcast linear 300K --engine $engine)
	ok "nobody may read in another, $engine" publishes -gt \
		"$BUILD/tests/multi/without_call" process_vm_readv $(bench 4 bcast linear 300K --engine $engine)
	ok "no memfd, $engine" publishes -eq \
		"$BUILD/tests/multi/without_call" memfd_create $(bench 3 bcast linear 300K --engine $engine)
	ok "short transfers, $engine" publishes -eq \
		env COLL_INJECT=short:probability=0.3 $(bench 3 bcast linear 300K --engine $engine)
done
for progress in thread auto helper; do
	ok "progress=$progress" publishes -gt env COLL_PROGRESS=$progress $(bench 3 bcast linear 300K)
done
ok "two ranks: there is one reader" publishes -eq $(bench 2 bcast linear 300K)
ok "chosen by cost" publishes -gt "$COLL" bench bcast -n 8 --size 256K --iterations 20 --counters --json

# Ranks that differ choose alike, by rank 0's costs: by those of a publication, if that one may publish.
differs() {	# RANK CHOSEN: how many of the messages are linear's
	timeout -s KILL 60 "$COLL" run -q -n 8 --no-prefix -- "$BUILD/tests/multi/published" differs $1 \
		>"$work/out" 2>"$work/err" &&
		sed 's/, [0-9]* ops,.*//' "$work/out" | sort | uniq -c >"$work/choices" &&
		[ "$(awk '$1 == 8' "$work/choices" | wc -l)" -eq 8 ] && [ "$(wc -l <"$work/choices")" -eq 8 ] &&
		[ "$(awk '$2 <= 1048576 && $2 >= 65536 && /: linear/' "$work/choices" | wc -l)" $2 ] ||
		{ sed 's/^/# /' "$work/choices" "$work/err"; false; }
}
ok "a reader shares no memory: all choose as if it did" differs 3 "-gt 0"
ok "rank 0 does not: nobody counts on it" differs 0 "-eq 0"

# Readers that come late need no more of the root, whatever it does meanwhile.
late() {	# WAY RANKS-THAT-END ENGINE
	COLL_ENGINE=$3 timeout -s KILL 60 "$COLL" run -q -k -n 4 -t 50 --no-prefix -- \
		"$BUILD/tests/multi/published" "$1" >"$work/out" 2>"$work/err"
	[ "$(grep -cE '^(right|error)$' "$work/out")" -eq "$2" ] || { sed 's/^/# /' "$work/out" "$work/err"; return 1; }
}
for engine in uring epoll; do
	ok "the root computes, $engine" late computes 4 $engine
	ok "the root leaves, $engine" late leaves 4 $engine
	ok "the root dies, $engine" late dies 3 $engine
	ok "the root is ahead, $engine" late ahead 4 $engine
	ok "a reader dies with all slots, $engine" late buried 3 $engine
done

# A rank dies or stops while others read, or have not read yet; the root, and a reader.
for way in kill stop; do
	for rank in 0 3; do
		for elements in 100000 2000000; do
			COLL_BCAST=linear timeout -s KILL 60 "$COLL" run -q -k -n 5 -t 50 --no-prefix -- \
				"$BUILD/tests/multi/rank_failures" bcast $way $rank "" $elements \
				>"$work/out" 2>"$work/err"
			[ "$(grep -c '^survived$' "$work/out")" -eq 4 ] ||
				{ sed 's/^/# /' "$work/out"; false; }
			result $? "$way of rank $rank in bcast of $elements elements"
		done
	done
done
tap_end
