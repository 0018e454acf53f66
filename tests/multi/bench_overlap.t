#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll bench overlap measures every mode of progress, checks the results, or says why a mode
# is not possible; it refuses wrong options. And progress=auto follows the application.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {		# ARGUMENT ...
	timeout 100 "$COLL" bench overlap "$@" >"$work/out" 2>"$work/err"
}

refused() {	# SAID ARGUMENT ...
	said=$1
	shift
	run "$@"
	[ $? -eq 2 ] && grep -q -- "$said" "$work/err"
	result $? "refused: coll bench overlap $*"
}

quick="--iterations 3 --rounds 1 --size 16K"

run -n 2 $quick --json && jq -e '
	.benchmark == "overlap" and .ranks == 2 and
	[.modes[].mode] == ["call", "thread", "helper", "kernel", "auto"] and
	([.modes[] | select(.mode != "kernel") | .available] | all) and
	([.modes[] | select(.available) | .wrong == 0 and .iterations == 3 and
		([.cases[].case] | index("noovlp") and index("ovlp-test") and index("ovlp-notest") and
		 index("blocking")) and .overlap >= 0 and .overlap <= 100 and .start_us > 0] | all) and
	(.modes[] | select(.mode == "thread") | .explanation | contains("alltoall of 16384")) and
	([.modes[] | select(.available | not) | .reason | contains("/dev/coll")] | all)
	' "$work/out" >"$work/err"
result $? "every mode, as JSON"

run -n 3 $quick --modes thread,auto --in-flight 5 --collective allreduce --algo ring --place own \
	--inject os:periodic:period=5ms,duration=200us --pace 10M && grep -q '^thread .*alone' "$work/out" &&
	grep -q '^auto .*alone' "$work/out" && ! grep -q WRONG "$work/out"
result $? "several in flight, a CPU of its own, paced links, noise"

run -n 1 $quick --modes call --threads 3 --rows 100 && grep -q '100 rows of 500, 3 threads' "$work/out"
result $? "threads, and a number of rows"

if command -v gnuplot >/dev/null; then
	run $quick --modes call,thread --plot "$work/plot.svg" && grep -q '<svg' "$work/plot.svg"
	result $? "a picture"
else
	skip "a picture" "no gnuplot"
fi

refused "valid: call, thread, helper, kernel, auto" --modes fast
refused "--place 'else'; valid: shared, own, kernel" --place else
refused "that begins with os:" --inject link:poisson:rate=1,duration=1ms
refused "from 1 to 64" --in-flight 0
refused "'allreduce' is one argument too many" allreduce
refused "ending in .svg" --plot a.png
refused "no option '--frob'" --frob

for engine in uring epoll; do
	COLL_ENGINE=$engine COLL_DEADLINE=30s timeout 100 "$COLL" run -q -n 3 -- \
		"$BUILD/tests/multi/progress_auto_follows" thread >"$work/out" 2>"$work/err"
	result $? "auto: to a thread and back, twice, $engine"
done
tap_end
