#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Long messages within a node are read in the process that sends them, where that is allowed, and
# go through the ring where it is not: the results are right in both cases. What is received only to
# be reduced is reduced where it is.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# exposes COMPARISON COMMAND...: a run of COMMAND, a benchmark that checks its results. The bytes
# that each run and rank exposes are compared with 0.
exposes() {
	compare=$1
	shift
	timeout 120 "$@" >"$work/out" 2>"$work/err" || return 1
	bytes=$(sed -n 's/.*"exposed_bytes": \([0-9]*\).*/\1/p' "$work/out" | sort -n | head -1)
	[ -n "$bytes" ] && [ "$bytes" $compare 0 ]
}

# The first messages of a length go both ways by turns: then comes what is faster here.
bench() {	# RANKS OPTION ...
	ranks=$1
	shift
	echo "$COLL" bench allreduce -n "$ranks" --algo rabenseifner --size 1500K --warmup 0 --iterations 4 \
		--counters --json "$@"
}

# fuses ENGINE: an allreduce whose messages fit into the ring. Each rank copies less than half of what
# it receives: unexpected messages and what comes before the other operand.
fuses() {
	timeout 120 "$COLL" bench allreduce -n 2 --engine "$1" --algo butterfly --size 200K \
		--iterations 20 --counters --json >"$work/out" 2>"$work/err" || return 1
	copied=$(sed -n 's/.*"copied_bytes": \([0-9]*\).*/\1/p' "$work/out")
	[ -n "$copied" ] && [ "$copied" -lt 102400 ] && grep -q '"wrong": 0' "$work/out"
}

for engine in uring epoll; do
	fuses $engine
	result $? "what is only reduced is not copied, $engine"
	exposes -gt $(bench 2 --engine $engine)
	result $? "2 ranks, $engine: read where they are"
	exposes -gt $(bench 5 --engine $engine)
	result $? "5 ranks, $engine: the same"
	exposes -eq env COLL_MEMORY=copy $(bench 2 --engine $engine)
	result $? "memory=copy, $engine: through the ring"
	exposes -ge env COLL_INJECT=short:probability=0.3 $(bench 3 --engine $engine)
	result $? "short transfers, $engine"
	exposes -ge "$BUILD/tests/multi/without_call" process_vm_readv $(bench 4 --engine $engine)
	result $? "nobody may read, $engine: through the ring after the first"
done
exposes -gt env COLL_PROGRESS=thread $(bench 3)
result $? "with progress by a thread"

# One of three may not read: it refuses, and the others go on.
cat >"$work/rank" <<-EOF
	#!/bin/sh
	[ "\$COLL_RANK" = 1 ] && exec "$BUILD/tests/multi/without_call" process_vm_readv "\$@"
	exec "\$@"
EOF
chmod +x "$work/rank"
timeout 120 "$COLL" run -t 100 -n 3 --no-prefix -- "$work/rank" $(bench 3) >"$work/out" 2>"$work/err" &&
	grep -q '"wrong": 0' "$work/out" && ! grep -q '"wrong": [1-9]' "$work/out"
result $? "one rank of three may not read"

# A rank dies or stops while others read in it.
for way in kill stop; do
	for collective in allreduce bcast alltoall; do
		timeout -s KILL 60 "$COLL" run -q -k -n 5 -t 50 --no-prefix -- \
			"$BUILD/tests/multi/rank_failures" $collective $way 3 "" 100000 \
			>"$work/out" 2>"$work/err"
		[ "$(grep -c '^survived$' "$work/out")" -eq 4 ] ||
			{ sed 's/^/# /' "$work/out"; false; }
		result $? "$way in $collective of 100000 elements"
	done
done
tap_end
