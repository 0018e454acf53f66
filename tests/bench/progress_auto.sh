#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The automatic choice of progress compared with the best fixed mode: product and collective together,
# in us, medians of ROUNDS jobs in turn.
#	BUILD=build sh tests/bench/progress_auto.sh [SIZE ...]
# Each line: place of the progress, bytes, calls in between or not, each mode's time, and the excess of
# `auto` over the least of the others. ROUNDS: 3; each case has enough calls for about SECONDS_EACH,
# 0.2 s, since `auto` needs time to learn.
set -eu
build=${BUILD:-build}
[ $# -gt 0 ] || set -- 8 1K 4K 16K 64K 256K

# Number of calls of 2 ranks, by the time of the bytes.
iterations() {	# SIZE
	numfmt --from=iec "$1" | awk -v s="${SECONDS_EACH:-0.2}" '{ print int(s / (1e-4 + $1 * 6e-8)) + 40 }'
}

echo 'progress,size,calls,call,thread,helper,kernel,auto,over the best'
for place in own shared; do
	for size; do
		"$build/coll" bench overlap -n 2 --place $place --pace 50M --size "$size" \
			--iterations "$(iterations "$size")" --rounds "${ROUNDS:-3}" --json |
			jq -r --arg place $place --arg size "$size" '
			[.modes[] | select(.available)] as $modes
			| ("ovlp-test", "ovlp-notest") as $case
			| [$modes[] | { (.mode): (.cases[] | select(.case == $case) | .p50_us) }]
			| add as $us
			| ([$us | to_entries[] | select(.key != "auto") | .value] | min) as $best
			| [$place, $size, (if $case == "ovlp-test" then "yes" else "no" end),
			   ($us | .call, .thread, .helper, .kernel, .auto
			    | if . then round else "-" end),
			   "\(($us.auto / $best - 1) * 100 | round) %"]
			| join(",")'
	done
done
