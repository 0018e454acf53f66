#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise predict: by the schedules for few ranks, by order statistics for many, from
# measured times; and its errors. Virtual time only.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A hundredth of the time, in events of 100 us; 20 s.
awk 'BEGIN { for (i = 0; i < 2000; i++) printf "%.0f 100000\n", i * 1e7 + i * i % 4999 * 1e3 }' \
	>"$work/noise"

predict() {
	"$BUILD/collnoise" predict "$work/noise" "$@" 2>&1
}

# figure REMEDY NAME: of the last JSON
figure() {
	sed -n "/\"$1\"/,/}/s/.*\"$2\": \([^,]*\),*/\1/p" "$work/json"
}

near() {	# A B SHARE
	awk -v a="$1" -v b="$2" -v s="$3" 'BEGIN { exit !(a > b * (1 - s) && a < b * (1 + s)) }'
}

predict -n 4 --algo butterfly --ideal 100us --idle 5ms --json >"$work/json"
like "few ranks: the schedules" "$(cat "$work/json")" '"by": "schedules"'
ok "no noise in an offloaded call: $(figure offloaded mean_s)" \
	near "$(figure offloaded mean_s)" 1e-4 1e-6
# A rank begins inside an event in 1 % (and waits 50 us), and meets a whole one in 1 %.
mean=$(figure as_is mean_s)
ok "four ranks, by hand 104 to 112 us: $mean" near "$mean" 1.08e-4 0.04
ok "at the same time it is less: $(figure coscheduled mean_s)" \
	near "$(figure coscheduled mean_s)" 1.015e-4 0.01
predict -n 4 --algo butterfly --ideal 100us --idle 5ms --json >"$work/again"
ok "the same again" cmp -s "$work/json" "$work/again"

# Nine calls of ten take 100 us, one 1 ms: the mean is 90 us more, and that is the 99th of 100.
for i in 1 2 3 4 5 6 7 8 9; do echo 100; done >"$work/base"
echo 1000 >>"$work/base"
predict -n 4 --algo butterfly --base "$work/base" --idle 5ms --json >"$work/json"
more=$(awk -v a="$(figure as_is mean_s)" -v b="$mean" 'BEGIN { print a - b }')
ok "measured times come on top: $more" near "$more" 9e-5 0.01
ok "in the tail as well: $(figure as_is p99_s)" near "$(figure as_is p99_s)" 1.03e-3 0.07

predict -n 4096 --ideal 100us --idle 5ms --json >"$work/json"
like "many ranks: order statistics" "$(cat "$work/json")" '"by": "order statistics"'
like "times of one number of ranks" "$(predict --base "$work/base")" 'give -n one from 2 to 128'
echo 12x >"$work/bad"
like "a file without valid times" "$(predict -n 4 --base "$work/bad")" 'bad:1: valid: microseconds'
like "an unknown algorithm" "$(predict --algo foo)" "algo 'foo'; valid: butterfly"
tap_end
