#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What collnoise predict says against what real ranks measure: noise is injected
# into coll bench, and the same model, written down as a capture, is predicted.
#	BUILD=build sh tests/bench/predict.sh [RANKS ...]
# CSV: ranks, mean and p99 of both in us, and how far the prediction is off.
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

echo 'ranks,quiet_us,measured_mean_us,predicted_mean_us,off,measured_p99_us,predicted_p99_us,off'
for ranks in ${*:-2 4 8 16}; do
	ideal=$(bench "$ranks" 5000 | jq '[.. | .mean_us? // empty] | .[0]')
	# Phases and rare delays even out over some hundred events: 4 s of calls and more.
	bench "$ranks" "$(awk -v t="$ideal" 'BEGIN { printf "%.0f", 4e6 / t }')" \
		"os:periodic:period=${period_ms}ms,duration=${duration_ms}ms,how=sleep" >"$work/out"
	mean=$(jq '[.. | .mean_us? // empty] | .[0]' "$work/out")
	p99=$(jq '[.. | .p99_us? // empty] | .[0]' "$work/out")
	"$build/collnoise" predict "$work/noise" -n "$ranks" --ideal "${ideal}us" \
		--idle "${ideal}us" --json >"$work/predicted"
	jq -r --argjson ranks "$ranks" --argjson ideal "$ideal" --argjson mean "$mean" \
		--argjson p99 "$p99" '.predictions[0].as_is |
		[$ranks, $ideal, $mean, .mean_s * 1e6, .mean_s * 1e6 / $mean - 1,
		 $p99, .p99_s * 1e6, .p99_s * 1e6 / $p99 - 1] | map(. * 1000 | round / 1000) | @csv' \
		"$work/predicted"
done
