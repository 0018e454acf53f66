#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What needs an exact clock, in a machine whose time is what was executed, the same on every
# host: a storm at its rate, gaps that add up, what a watch costs and what colld tells by it,
# processes killed in long reductions, a calibration of the injector by the measuring loop. The
# long way, tests/vm/exact.t -l, has ten seconds of storm, and four of each context.
here=$(dirname "$0")
storm=2000 calibrate="2 hardirq softirq fifo"
[ "${1:-}" != -l ] || storm=10000 calibrate="4 hardirq softirq fifo other"
build=${BUILD:-build}
exec "$here/run" -i -t 1200 -s 600 -p "$build/collnoise" -p "$build/coll" -p "$build/colld" -p /bin/sh \
	-p "$(command -v jq)" -p "$here/exact_inside.sh" 6.12 "exact_inside.sh $calibrate" \
	"pin_test storm $storm c 1000" 'watch_test exact daemon interrupt together gap' \
	'watch_rank_test exact cost reading share two' 'watch_sources_test exact' 'watch_taken_test exact' \
	attribution_test 'attribution_test bound' 'offload_bounded_test exact'
