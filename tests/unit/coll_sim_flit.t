#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll sim flit: its output and its errors.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flit() {
	"$COLL" sim flit "$@" 2>&1
}

# fails STATUS ARGUMENT...: it ends with this status.
fails() {
	fails_want=$1
	shift
	flit "$@" >/dev/null
	[ $? -eq "$fails_want" ]
}

small="--net mesh:4x4 --rate 0.01 --cycles 2000"

like "coll sim names it" "$("$COLL" sim --help)" "coll sim flit|^  flit "
like "help" "$(flit --help)" "^usage: coll sim flit"
like "a table" "$(flit $small)" "^occupancy +0\.01 +[0-9]+\.[0-9]+"
like "the proof against deadlock is reported" "$(flit $small)" "free of deadlock: [0-9]+ dependencies"
is "the same seed, the same figures" "$(flit $small --csv --seeds 3 | cut -d, -f1-60)" \
	"$(flit $small --csv --seeds 3 --jobs 3 | cut -d, -f1-60)"
is "CSV: a heading, and a line a policy and rate" \
	"$(flit $small --csv --rate 0.002:0.01:0.004 --policy rr,age,hold | wc -l)" 10
like "JSON" "$(flit $small --json)" '"policy": "rr", "rate": 0\.01, "latency": [0-9.]+, '
ok "series and distribution" quiet flit $small --series "$work/series" --interval 100 \
	--distribution "$work/latency" --bin 5
is "a point every interval" "$(grep -c '^rr,' "$work/series")" 19
like "bins" "$(cat "$work/latency")" '^occupancy,0\.01,0,[0-9]*[05],[0-9]+$'

# A message alone: 16 to set up, 1 in, 3 routers of 2, then 21 flits of 3.
printf '# a trace\n5 0 2 16\n' >"$work/trace"
like "a trace" "$(flit --net mesh:4x4 --trace "$work/trace" --policy rr --csv)" '^rr,0,1,86\.0000'
printf '5 0 16 1\n' >"$work/trace"
like "a trace that does not fit" "$(flit --net mesh:4x4 --trace "$work/trace")" 'trace:1: no such node'
printf '5 0 1 1\n4 0 1 1\n' >"$work/trace"
like "a trace that goes back" "$(flit --net mesh:4x4 --trace "$work/trace")" 'trace:2: .*not go back'

like "a collective's schedules" "$(flit --net mesh:4x4 --traffic schedule --collective allreduce \
	--algorithm butterfly-redundant:T=1 --ranks 13 --bytes 64,1K --place random)" "^rr +1024 "
like "fft" "$(flit --net tesh:1,2,0 --traffic fft --data 1,2 --jitter 9 --seeds 2)" "^occupancy +2 "
like "four directions" "$(flit --net tesh:1,2,0 --traffic four --rounds 2)" "^occupancy +2 "
for traffic in hotspot transpose complement; do
	ok "$traffic" quiet "$COLL" sim flit $small --traffic $traffic
done

like "an option of other traffic" "$(flit $small --collective foo)" \
	'--collective, but the traffic is uniform; valid with --traffic schedule$'
like "an option of two kinds of traffic" "$(flit --traffic schedule --jitter 3)" 'valid with --traffic fft four$'
ok "proof" quiet "$COLL" sim flit --net tesh:2,2,0 --routing adaptive --proof
ok "broken classes are refused" fails 1 $small --net torus:6x6 --break-classes
like "with the ring of channels" "$(flit --net torus:6x6 --break-classes)" \
	'can deadlock: 6 channels.*\([0-5],1\)->\([0-5],1\) vc 0'
like "with --unsafe the run stops at the deadlock and reports it" \
	"$(flit --net tesh:2,2,0 --break-classes --unsafe --rate 0.002 --policy rr)" \
	'deadlock after [0-9]+ cycles: [0-9]+ channels .*\([0-3],[0-3]\)\(0,[03]\)->'

like "messages that draining leaves are named" "$(flit --net mesh:4x4 --cycles 300 --drain --rate 1 --policy rr)" \
	'^coll sim flit: policy rr, rate 1, seed 1: [0-9]+ messages of the window had not arrived after 15000 cycles'
is "a range has at most 256 values" \
	"$(flit --net mesh:4x4 --cycles 1 --policy rr --csv --rate 0:0.255:0.001 | wc -l)" 257

printf '0 0 1 4 # %0300d\r\n\n' 5 >"$work/trace"
like "a trace with a long comment" "$(flit --net mesh:4x4 --trace "$work/trace" --policy rr)" '^rr '
for line in "0 0 1 4294967295" "0 0 -1 4" "0 0 1 0" "-1 0 1 4" "0 0 1 4 5" "18446744073709551616 0 1 4"; do
	printf '%s\n' "$line" >"$work/trace"
	like "not a message: $line" "$(flit --net mesh:4x4 --trace "$work/trace")" 'trace:1: '
done
like "a trace that cannot be read" "$(flit --net mesh:4x4 --trace "$work")" ': Is a directory$'
ok "a full disk is an error" fails 1 $small --series /dev/full --interval 100
is "what cannot be written is found before the runs" "$(timeout 20 "$COLL" sim flit --cycles 1000000000 \
	--distribution "$work/none/file" 2>&1)" "coll sim flit: cannot write $work/none/file: No such file or directory"

workers_gone() {
	"$COLL" sim flit --cycles 100000000000 --seeds 3 --jobs 2 --policy rr --net mesh:4x4 &
	flit_pid=$!
	for try in 1 2 3 4 5 6 7 8 9 10; do
		workers=$(ps -o pid= --ppid $flit_pid)
		[ "$(echo $workers | wc -w)" -eq 2 ] && break
		sleep 0.3
	done
	kill -KILL $flit_pid
	wait $flit_pid 2>/dev/null
	sleep 0.5
	for worker in $workers; do
		ps -o stat= -p "$worker" | grep -v '^Z' && kill -KILL "$worker" && return 1
	done
	[ -n "$workers" ]
}
ok "after a kill no worker is left" quiet workers_gone

like "a short run's deadlock is reported, too" \
	"$(flit --net tesh:2,2,0 --break-classes --unsafe --rate 0.002 --policy rr --cycles 4000)" 'deadlock after 4000 cycles'

for wrong in "--net ring:4" "--net mesh:1x4" "--net tesh:2,9,0" "--policy best" "--traffic noise" \
	"--rate 2" "--rate 1:2" "--vcs 0" "--vcs 13" "--routing tesh" "--routing north-last --net torus:4x4" \
	"--credit 0 --machine booksim" "--one-port 1" "--warmup 20000" "--traffic trace" "--hot 300 --traffic hotspot" \
	"--traffic fft --net mesh:3x3" "--net torus:4x4 --vcs 1" "--length" "--nonsense" "extra" \
	"--rate nan" "--rate 0:1:inf" "--rate 0.1:0.2:0.1x" "--rate 0:0.2556:0.001" "--rate -0.1" "--rate 0.1," \
	"--traffic schedule --rounds 2,3" "--traffic schedule --rounds 2x" "--traffic schedule --bytes 10" \
	"--traffic fft --data 1.5" "--traffic schedule --rate 0.1" "--traffic fft --length 3" \
	"--net mesh:+4x4" "--net mesh:4x4x4x" "--net tesh:4294967298,2,0" "--series x" "--proof --no-proof" "--json --csv"; do
	ok "refused: $wrong" fails 2 $wrong
done
like "an error names what is valid" "$(flit --policy best)" 'valid: rr, occupancy, .*hold'
like "no CSV of a proof" "$(flit --proof --csv 2>&1)" "--proof has no CSV; valid: --json"
tap_end
