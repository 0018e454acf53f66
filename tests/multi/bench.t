#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll bench: it measures every collective, checks, and refuses what is wrong.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {		# EXPECTED-STATUS ARGUMENT ...
	expected=$1
	shift
	exits "$expected" "$COLL" bench "$@"
}

refused() {	# SAID ARGUMENT ...
	said=$1
	shift
	run 2 "$@" && found "$said" err && [ ! -s "$work/out" ]
	result $? "refused: coll bench $*"
}

# ---- what is measured ------------------------------------------------------------

for collective in barrier bcast gather gatherv scatter scatterv allgather allgatherv \
		alltoall alltoallv reduce allreduce reduce_scatter reduce_scatter_block scan exscan; do
	ok=0
	for n in 1 5; do
		run 0 $collective -n $n --size 0,24,16K --iterations 6 --csv || ok=1
		lines=4
		[ $collective = barrier ] && lines=2
		[ "$(wc -l <"$work/out")" -eq $lines ] || ok=1
	done
	result $ok "$collective of 1 and 5 ranks, 3 sizes"
done

for type in int8 uint64 fp16 bf16 float double_int32; do
	op=sum
	[ $type = double_int32 ] && op=minloc
	run 0 allreduce -n 3 --type $type --op $op --size 4K --iterations 4 --algo butterfly,ring
	result $? "allreduce of $type $op"
done

# ---- how it is told ---------------------------------------------------------------

run 0 allreduce -n 4 --algo butterfly,butterfly-redundant:T=1,ring:segment=4K \
	--size 8,8K --iterations 20 --json --counters &&
	"$BUILD/tests/multi/bench_json" allreduce 4 2 3 20 <"$work/out" >>"$work/err" 2>&1
result $? "JSON: sizes, algorithms, percentiles in order, ratios, counters"

run 0 allreduce -n 4 --algo butterfly --size 8 --iterations 20 --json --engine epoll &&
	found '"engine": "epoll"' out
result $? "the requested engine is used"

run 0 allreduce -n 2 --algo butterfly,ring --iterations 10 && found '^8 bytes +mean +median' out &&
	found '^  ring .* [0-9]+\.[0-9]+$' out && found 'checked on every iteration' out
result $? "table"

if command -v gnuplot >/dev/null; then
	run 0 allreduce -n 2 --algo butterfly,ring --size 8,1K,8K --iterations 5 \
		--plot "$work/lines.svg" && grep -q '<svg' "$work/lines.svg" &&
		[ -s "$work/lines.gp" ] &&
		run 0 allreduce -n 2 --iterations 5 --plot "$work/bars.svg" &&
		grep -q '<svg' "$work/bars.svg"
	result $? "plots over sizes and of one size"
else
	skip "plots" "no gnuplot"
fi

timeout 60 "$COLL" run -n 3 --no-prefix -- "$COLL" bench barrier -n 7 --iterations 5 \
	>"$work/out" 2>"$work/err" && found '^barrier, 3 ranks' out
result $? "inside a job it is one of its ranks"

COLL_INJECT=short:probability=0.5 run 0 allreduce -n 2 --iterations 3 &&
	found '^injected: short:probability=0.5' out &&
	COLL_INJECT=short:probability=0.5 run 0 allreduce -n 2 --iterations 3 --inject off &&
	found '^injected: nothing' out
result $? "COLL_INJECT counts, --inject wins"

middle() {	# FILE of 12 times
	[ "$(wc -l <"$1")" -eq 12 ] && sort -g "$1" | sed -n 6p
}
run 0 allreduce -n 2 --iterations 12 --pause 6ms --inject os:periodic:period=50ms,duration=45ms \
	--samples "$work/samples" --base "$work/base" &&
	awk -v with="$(middle "$work/samples")" -v without="$(middle "$work/base")" \
		'BEGIN { exit !(without > 0 && with > without) }'
result $? "calls without injection alternate with the others"

run 0 allreduce -n 3 --time 0.3 --json && [ "$(grep -c '"iterations"' "$work/out")" -eq 1 ]
result $? "as many iterations as the time allows"

export COLL_ALLREDUCE=butterfly-redundant:T=99 COLL_EXPLAIN=1
run 0 allreduce -n 2 --iterations 3
unset COLL_ALLREDUCE COLL_EXPLAIN
cat "$work/out" "$work/err" >"$work/both"
found 'butterfly-redundant:T=1 .requested' both
result $? "of a T that a group does not have, the one in use is named"

# ---- errors -----------------------------------------------------------------------

refused "no collective 'foo'; valid: barrier" foo
refused 'the collective is needed'
refused 'one collective at a time' bcast reduce
refused "'nope'; valid: auto, butterfly" allreduce --algo nope
refused "ring has no option 'T'; valid: segment" allreduce --algo ring:T=1
refused 'a multiple of the 8 bytes of double' allreduce --size 5
refused '8, 64K, 1M' allreduce --size 8X
refused 'not defined for --type double' allreduce --op band
refused "--engine 'magic'; valid: auto, uring, epoll" allreduce --engine magic
refused "valid: os:periodic, os:poisson" allreduce --inject wind
refused 'what --inject leaves out' allreduce --base "$work/base"
refused 'names rank 9, but there are 2 ranks' allreduce -n 2 --inject kill:rank=9,after=1
refused 'names rank 7, but there are 2 ranks' allreduce -n 2 --inject link:poisson:rate=100,duration=2ms,from=7
refused 'one algorithm and one size' allreduce --inject off --base "$work/base" --size 8,16
refused 'a whole number from 1 to 1024' allreduce -n 0
refused "no option '--frobnicate'; valid: --ranks" allreduce --frobnicate
refused '--size needs a value' allreduce --size
refused 'a number from 0.001 to 86400' allreduce --time -1
refused 'ending in .svg' allreduce --plot picture.png

# ---- beside the MPIs ---------------------------------------------------------------

# Here the rank program of libcoll alone: what make bench builds, runs and prints.
collectives=barrier,bcast,reduce,allreduce,reduce_scatter,allgather,gather,scatter,alltoall
for transport in memory tcp; do
	if [ -n "$SANITIZE" ]; then
		skip "make bench, over $transport" "a library with sanitizers measures nothing"
		continue
	fi
	PEERS=coll timeout 120 sh tests/bench/peers.sh -t $transport -c $collectives -s 24,65544 1 0.02 3 \
		>"$work/out" 2>"$work/err" && found '^floor: copy of 1024 KB ' out &&
		[ "$(grep -c '^| 3 | [a-z_]* | [0-9]* | [0-9.]* ' "$work/out")" -eq 17 ]
	result $? "make bench, over $transport: every collective is measured"
done

run 1 alltoallv -n 3 --algo bruck --size 8 --iterations 3 && found 'it needs the option .bound' err
result $? "an algorithm that cannot serve the call is an error"

tap_end
