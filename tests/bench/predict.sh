#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What collnoise predict says against what real ranks measure: noise is injected
# into coll bench, and the same model, written down as a capture, is predicted.
#	BUILD=build sh tests/bench/predict.sh [RANKS ...]
# CSV: ranks, mean and p99 of both in us, and how far the prediction is off. The model gets
# the median without injection as the ideal: the mean has the machine's own delays in it.
set -eu
build=${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
period_ms=20 duration_ms=2

awk -v p=$((period_ms * 1000000)) -v d=$((duration_ms * 1000000)) 'BEGIN {
	for (i = 0; i < 500; i++) printf "%.0f %.0f\n", i * p, d }' >"$work/noise"

bench() {
	"$build/coll" bench allreduce -n "$1" --algo butterfly --size 8 --iterations "$2" \
		--warmup 20 --json ${3:+--inject "$3"}
}

figure() {	# NAME: of the last run
	jq "[.. | .$1? // empty] | .[0]" "$work/out"
}

echo 'ranks,quiet_p50_us,quiet_mean_us,measured_mean_us,predicted_mean_us,off,measured_p99_us,predicted_p99_us,off'
for ranks in ${*:-2 4 8 16}; do
	bench "$ranks" 500 >"$work/out"
	# Phases and rare delays even out over some hundred events: 3 s of calls and more.
	calls=$(awk -v t="$(figure p50_us)" 'BEGIN { printf "%.0f", t < 15 ? 2e5 : 3e6 / t }')
	bench "$ranks" "$calls" >"$work/out"
	ideal=$(figure p50_us) quiet=$(figure mean_us)
	bench "$ranks" "$calls" \
		"os:periodic:period=${period_ms}ms,duration=${duration_ms}ms,how=sleep" >"$work/out"
	"$build/collnoise" predict "$work/noise" -n "$ranks" --ideal "${ideal}us" \
		--idle "${ideal}us" --json >"$work/predicted"
	# What the machine's own delays add to the mean stays.
	jq -r --argjson ranks "$ranks" --argjson ideal "$ideal" --argjson quiet "$quiet" \
		--argjson mean "$(figure mean_us)" --argjson p99 "$(figure p99_us)" \
		'.predictions[0].as_is |
		(.mean_s * 1e6 + $quiet - $ideal) as $predicted |
		[$ranks, $ideal, $quiet, $mean, $predicted, $predicted / $mean - 1,
		 $p99, .p99_s * 1e6, .p99_s * 1e6 / $p99 - 1] | map(. * 1000 | round / 1000) | @csv' \
		"$work/predicted"
done
