#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll sim replay as a command: traces, GOAL, its output and its errors.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ft=sim/traces/ft-a-16.trace

replay() {
	"$COLL" sim replay "$@" 2>&1
}

plain() {	# jq 1.7 prints numbers as they were written
	awk '{ printf "%.9g", $0 }'
}
number() {	# NAME: what JSON says of the whole
	jq -r ".$1" "$work/json" | plain
}

"$COLL" schedule allreduce ring 8 --count 100 --goal --reduce-ns 1 >"$work/ring.goal"
replay "$work/ring.goal" --gamma 1ns --json >"$work/json"
is "GOAL out and in again takes the same time" "$(number mean_s)" \
	"$("$COLL" sim allreduce --algo ring --ranks 8 --size 800 --gamma 1ns --json |
		jq '.algorithms[0].mean_s' | plain)"
replay "$work/ring.goal" --unit 1us --json >"$work/json"
ok "--unit" test "$(jq '.by_rank[0].computing_s > 0.0001' "$work/json")" = true

printf '%s\n' 'coll-trace version=1 rank=0 ranks=2' 'group number=0 ranks=0,1' 'cpu ns=1000' \
	'send group=0 to=1 tag=5 bytes=1000' 'barrier group=0' end >"$work/t.0"
printf '%s\n' 'coll-trace version=1 rank=1 ranks=2' 'group number=0 ranks=0,1' \
	'recv group=0 from=-1 tag=-1 bytes=4000' 'cpu ns=500' 'barrier group=0' end >"$work/t.1"
replay "$work/t" --json >"$work/json"
is "a prefix: computing, message, computing, barrier" "$(number mean_s)" 4.5e-06
is "what rank 1 waited" "$(number 'by_rank[1].waiting_s')" 3e-06
is "the critical path's computing" "$(number critical_path.computing_s)" 1.5e-06
replay "$work/t.1" "$work/t.0" --cpu 2 --json >"$work/json"
is "files, in any order; a slower CPU" "$(number mean_s)" 6e-06
like "a table" "$(replay "$work/t")" "critical path: computing 33.3 %"

replay "$ft" --alike --os-noise periodic:period=10ms,duration=250us --noise-semantics occupancy \
	--runs 3 --json >"$work/json"
ok "one trace for all, with noise" test "$(jq '.effect > 1.02' "$work/json")" = true
replay "$ft" --alike --os-noise periodic:period=10ms,duration=250us --noise-semantics occupancy \
	--runs 3 --threads 1 --json >"$work/again"
ok "same seed, same bytes" cmp "$work/json" "$work/again"
time_of() {
	replay "$ft" --alike --json "$@" | jq .mean_s
}
less() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a + 0 < b + 0) }'
}
plain=$(time_of)
ok "another algorithm" less "$plain" "$(time_of --algo alltoall=bruck)"
ok "two clusters" less "$plain" "$(time_of --clusters 2 --wan-alpha 5ms)"
ok "circuits" less "$plain" "$(time_of --delta 1ms --ports 2)"
ok "more ports" less "$(time_of --delta 10ms --ports 8)" "$(time_of --delta 10ms --ports 1)"

for r in 0 1; do
	printf '%s\n' "coll-trace version=1 rank=$r ranks=2" 'group number=0 ranks=0,1' \
		'alltoallv group=0 send=8,8 recv=8,8' end >"$work/v.$r"
done
like "circuits for a call whose counts are not known to all" "$(replay "$work/v" --delta 1ms)" \
	'no algorithm fits'

like "a slow rank that is not there" "$(replay "$work/t" --slow 2:9)" '--slow 2, but there are 2 ranks'
like "help" "$(replay --help)" 'usage: coll sim replay'
like "no file" "$(replay --runs 2)" 'no file'
like "a missing trace" "$(replay "$work/t.0")" 'that of rank 1 is missing'
like "a file that does not exist" "$(replay "$work/nothing")" 'No such file'
sed -i s/tag=5/tag=x/ "$work/t.0"
like "a wrong line" "$(replay "$work/t")" 't.0:4: tag=x; valid: a number'
like "a file that is not a trace" "$(replay man/coll.1)" 'coll.1:1: not a coll-trace'
like "an unknown algorithm" "$(replay "$ft" --algo bcast=foo)" "bcast has no algorithm 'foo'"
like "an option of another command" "$(replay "$ft" --ranks 3)" "no option '--ranks'; valid: --alike"
like "ports without circuits" "$(replay "$ft" --ports 3)" "--ports and --wavelengths need --delta"
tap_end
