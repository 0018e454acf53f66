#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise latency from user space: wake-ups are counted, judged, told and drawn.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/collnoise.sh"

cpus=$(nproc)
ok "latency" status 0 latency --user -d 1s -p 2ms --json
holds "of every CPU" "(.cpus | length) == $cpus and .by == \"user\" and .period_ns == 2e6"
holds "each period had its wake-up, or is missed" 'all(.cpus[]; .thread.count > 5 and
	.thread.count + .missed <= 501)'
holds "percentiles are in order" 'all(.cpus[].thread; .min_ns <= .p50_ns and .p50_ns <= .p99_ns and
	.p99_ns <= .p999_ns and .p999_ns <= .max_ns and .min_ns <= .mean_ns and .mean_ns <= .max_ns)'
holds "the histogram holds them all" 'all(.cpus[].thread; ([.histogram[].count] | add) == .count)'
holds "no bucket is beyond the longest" 'all(.cpus[].thread; .max_ns as $max | all(.histogram[]; .from_ns <= $max))'
holds "causes are not known from user space" '(.longest | length) == 0 and (has("passed") | not)'

ok "an ordinary thread" status 0 latency --user -c 0 -d 0.3s -P o:0 --json
holds "has its priority told" '.priority == "o:0"'
ok "the table" status 0 latency --user -c 0 -d 0.3s
like "has a line for the CPU" "$(cat "$work/out")" '^0 +thread +[0-9]+ '
ok "rtla's histogram" status 0 latency --user -c 0 -d 0.3s --histogram -b 10 -E 5
like "its head" "$(cat "$work/out")" '^# RTLA timerlat histogram$'
like "its CPUs" "$(cat "$work/out")" '^Index +IRQ-000 +Thr-000'
like "its end" "$(cat "$work/out")" '^over: +[0-9]+'

ok "-s ends it, with exit code 2" status 2 latency --user -c 0 -d 50s -s 1us --json \
	--on-threshold "shell,command=echo a, b >'$work/act'"
holds "at once" '.stopped_by_threshold and .took_ns < 20e9 and .passed.threshold_ns == 1000 and
	.passed.case.total_ns > 1000'
is "and acts are done" "$(cat "$work/act")" "a, b"
ok "a threshold that nothing passes is none" status 0 latency --user -c 0 -d 0.2s -s 100s

if command -v gnuplot >/dev/null; then
	ok "a picture" status 0 latency --user -c 0 -d 0.3s "--plot=$work/picture.svg"
	like "is one" "$(head -c 300 "$work/picture.svg")" '<svg'
else
	skip "a picture" "no gnuplot"
fi
for wrong in "-p 99us" "-p 11s" "-P f:100" "-P r:5" "-s 0" "-c 4095" "--on-threshold trace"; do
	# shellcheck disable=SC2086
	ok "$wrong is refused" status 2 latency --user -d 1s $wrong
	like "with what is valid" "$(cat "$work/err")" 'valid: '
done
tap_end
