#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise injects and replays what is requested, and calibrate finds it again.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/collnoise.sh"

plan() {	# ARGUMENT...: the fingerprint of the first CPU's plan
	"$noise" inject --user -c 0 -d 1ms --json "$@" | jq -r '.cpus[0].plan'
}

# ---- inject --------------------------------------------------------------------------------

ok "inject" status 0 inject --user periodic:period=10ms,duration=250us -c 0 -d 0.5s --json \
	-o "$work/capture" --log "$work/log"
holds "every event was made" '.cpus[0].events == 50 and .cpus[0].lost == 0'
holds "none shorter than asked" '.cpus[0].duration_error.min_ns >= -1 and
	.cpus[0].injected_share >= .cpus[0].asked_share - 1e-9'
holds "none early" '.cpus[0].late.min_ns > -1000'
holds "so much was asked" '(.cpus[0].asked_share - 0.025 | fabs) < 1e-9'
is "the log has them" "$(wc -l <"$work/log")" 51
ok "starts are a period apart, on the clock's multiples" awk -F , '{ tail = substr($2, length($2) - 6) }
	NR == 2 { first = tail } NR > 2 && tail != first { exit 1 }' "$work/log"
ok "report of the capture" status 0 report "$work/capture" --json
holds "they are called injected" '.who[0].cause == "injected" and .all.duration.count == 50 and
	.all.duration.min_ns >= 249999'

poisson=poisson:rate=200,duration=50us
is "the same seed, the same plan" "$(plan $poisson --seed 5)" "$(plan $poisson --seed 5)"
ok "another seed, another plan" test "$(plan $poisson --seed 5)" != "$(plan $poisson --seed 6)"

# ---- replay ----------------------------------------------------------------------------------

printf '# one second\n1000000\t200000\n50000000\t100000\n80000000\t300000\n# Measurement period: 0.1 s\n' \
	>"$work/trace"
ok "replay" status 0 replay --user "$work/trace" -c 0 -d 0.5s --json --log "$work/log"
holds "over and over" '.cpus[0].events == 15'
is "with the gaps of the file" "$(awk -F , '{ tail = substr($2, length($2) - 11) }
	NR > 2 && NR < 6 { printf "%d ", tail - last } { last = tail }' "$work/log")" \
	"49000000 30000000 21000000 "
is "and its lengths" "$(awk -F , 'NR > 1 && NR < 5 { printf "%d ", $4 }' "$work/log")" \
	"200000 100000 300000 "
ok "replay of what was injected" status 0 replay --user "$work/capture" -c 0 -d 0.2s --json
holds "has its events" '.cpus[0].events >= 18'

# ---- calibrate --------------------------------------------------------------------------------

ok "calibrate" status 0 calibrate --user --duration 2s --json
holds "all events of twice the threshold and longer are found" '.recall_twice_threshold >= 0.999'
holds "50 ns to 10 ms" '[.detector[].length_ns] | .[0] == 50 and .[-1] == 10000000 and length == 17'
holds "and look as long as they were, or longer" "all(.detector[]; .found == 0 or
	(.seen_error.p50_ns > -2000 and .seen_error.p50_ns < $(limit 2000 1e9)))"
holds "every model was injected and seen" '(.injector | length) == 4 and all(.injector[];
	.injected > 0 and .found > 0 and (.points_off | . > -100 and . < 100))'
holds "the gaps of a Poisson plan are exponential" 'any(.injector[]; .ks_chance_plan? > 0.01)'
cp "$work/out" "$work/first"
if command -v gnuplot >/dev/null; then
	ok "calibrate with a picture" status 0 calibrate --user -d 1s --json -c 0 --seed 1 \
		--plot "$work/c.svg"
	like "is drawn" "$(cat "$work/c.svg")" 'Found of what was there'
	is "the same seed, the same plans" "$(jq -c '[.injector[].plan]' "$work/out")" \
		"$(jq -c '[.injector[].plan]' "$work/first")"
fi
ok "in words" status 0 calibrate --user -d 1s --model periodic:rate=100,duration=100us
like "with a line for each length" "$(cat "$work/out")" '^ +1\.00 us +[0-9]+ +[0-9]+ +[0-9.]+%'

# ---- what is wrong -----------------------------------------------------------------------------

refused "the model is needed" inject --user
refused "'foo' is not periodic, poisson or replay" inject --user foo
refused "needs duration" inject --user periodic:period=1ms
refused "more than 50.0 % \\(--max-share\\)" inject --user periodic:period=1ms,duration=600us
refused "more than 95 % of the time" inject --user periodic:period=1ms,duration=999us --max-share 100%
refused "whole number" inject --user $poisson --seed x
refused "--phase 'same'; valid: a phase in the model" inject --user $poisson --phase same
if [ ! -e /sys/module/coll ]; then
	ok "without the module, injecting by it" status 1 inject $poisson
	like "says so" "$(cat "$work/err")" 'the module is not loaded'
	ok "so does calibrate" status 1 calibrate -d 1s
fi
refused "the file is needed" replay --user
refused "'x' is not periodic" calibrate --user --model x
: >"$work/empty"
ok "an empty file" status 1 replay --user "$work/empty"
like "has no events" "$(cat "$work/err")" 'empty: no events'
tap_end
