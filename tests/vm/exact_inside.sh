#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	exact_inside.sh SECONDS CONTEXT...
#
# In the test machine: each context of the injector calibrated for so long. What was seen is
# what was injected, and that what was asked, to 0.05 points of the time.
export PATH=/bin
seconds=$1
shift

check() {	# WHAT FILTER
	if jq -e "$2" /tmp/json >/tmp/said; then
		echo "ok - $context: $1"
	else
		echo "not ok - $context: $1"
	fi
}

as_injected='all(.injector[]; (.seen_share - .injected_share) * 100 | fabs <= 0.05)'

# Once more where something else took milliseconds: in some runs the kernel does, for itself, once.
calibrate() {	# OPTION ...
	for try in 1 2; do
		collnoise calibrate -c 1 -d "${seconds}s" "$@" --context "$context" --json >/tmp/json || return
		! jq -e "$as_injected" /tmp/json >/tmp/said || break
	done
}

for context; do
	how="-P f:1"
	# No FIFO thread gives way to an ordinary one, whose long events are cut into slices.
	[ "$context" != other ] || how="-P o:19 --model periodic:rate=100,duration=250us \
		--model periodic:rate=1000,duration=25us --model poisson:rate=200,duration=125us"
	# shellcheck disable=SC2086 # words
	if ! calibrate $how; then
		echo "not ok - $context: calibrated"
		continue
	fi
	jq -r --arg context "$context" '.injector[] | "# \($context) \(.model): off by \(.points_off) points, " +
		"\(.found) of \(.asked) found, \(.event_cost_ns) ns beyond itself, \(.late.p50_ns) ns late"' /tmp/json
	check "events of twice the threshold are found" '.recall_twice_threshold >= 0.999'
	check "those of the module, too" 'all(.injector[]; .injected > 0 and .recall >= 0.999)'
	check "seen as injected" "$as_injected"
	# An ordinary thread may be kept waiting until its events are over.
	[ "$context" = other ] ||
		check "seen as asked, Poisson by its gaps" 'all(.injector[]; .good)'
done
