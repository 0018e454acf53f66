#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# In the test machine: rtla osnoise and collnoise measure, one after the other, while the
# module injects the same on CPU 1. What they say is told; that both see it is asserted.
export PATH=/bin

ok() {	# WHAT COMMAND...
	what=$1
	shift
	if "$@" >/tmp/said 2>&1; then echo "ok - $what"; else echo "not ok - $what"; fi
	while read -r line; do echo "# $line"; done </tmp/said
}

both() {	# CONTEXT
	collnoise inject periodic:period=20ms,duration=1ms --context "$1" -c 1 -d 300s --json >/tmp/injected &
	injector=$!
	sleep 1
	ok "$1: rtla osnoise" rtla osnoise top -q -c 1 -d 5s
	ok "$1: collnoise measure" sh -c 'collnoise measure -q -c 1 -d 5s -T 5us --json >/tmp/measured'
	kill -INT $injector
	wait $injector
	ok "$1: collnoise says" jq -c '[.who[] | [.cause, .name, .events, .total_ns]] | .[:6]' /tmp/measured
	ok "$1: and in all" jq -c '.cpus[0] | {events, share, max_ns}' /tmp/measured
	ok "$1: the injector says" jq -c '.cpus[0] | {planned, events, injected_share}' /tmp/injected
	ok "$1: collnoise names it" jq -e 'any(.who[]; .cause == "injected")' /tmp/measured
}

both hardirq
both fifo
