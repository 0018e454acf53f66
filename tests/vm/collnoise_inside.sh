#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# In the test machine: collnoise with the module. Its emulated clock bends, so shares are
# compared where both sides come from the same clock.
export PATH=/bin

ok() {	# WHAT COMMAND...
	what=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		echo "ok - $what"
	else
		echo "not ok - $what"
		while read -r line; do echo "# $line"; done </tmp/said
	fi
}

holds() {	# WHAT FILTER FILE
	ok "$1" jq -e "$2" "$3"
}

note() {	# FILTER FILE
	echo "# $(jq -c "$1" "$2")"
}

ok "measure" sh -c 'collnoise measure -c 1 -d 1s -T 1us --json >/tmp/plain'
holds "the module says who" '.explained and .module == "loaded"' /tmp/plain
holds "the timer's interrupt is among them" 'any(.who[]; .cause == "irq" and .events > 10)' /tmp/plain
note '[.who[] | [.cause, .name, .events, .total_ns]] | .[:8]' /tmp/plain

ok "inject by the module" sh -c \
	'collnoise inject periodic:period=10ms,duration=1ms -c 1 -d 3s --json >/tmp/injected &
	collnoise measure -c 1 -d 2s -T 1us --warm-up 0.3s --json >/tmp/measured; wait'
holds "as asked" '.context == "hardirq" and .cpus[0].events + .cpus[0].merged + .cpus[0].refused >= 295 and
	.cpus[0].duration_error.p50_ns >= 0' /tmp/injected
holds "the kernel says what was injected, to the loop too" 'any(.sources[]; .cause == "injected" and
	.times > 100 and .total_ns > 50e6) and any(.who[]; .cause == "injected")' /tmp/measured
note '[.who[] | [.cause, .name, .events, .total_ns]] | .[:8]' /tmp/measured
note '.cpus[0]' /tmp/injected

for context in softirq fifo other; do
	ok "inject as $context" sh -c \
		"collnoise inject poisson:rate=200,duration=200us --context $context -c 1 -d 1s --json >/tmp/injected"
	holds "events came" '.cpus[0].events > 100' /tmp/injected
done
ok "what the module refuses" sh -c \
	'! collnoise inject periodic:period=10ms,duration=9ms --max-share 50% -c 1 -d 1s 2>/tmp/refusal'
ok "is refused in words" jq -Rse 'test("max-share|share")' /tmp/refusal

printf '1000000\t200000\n5000000\t100000\n# Measurement period: 0.01 s\n' >/tmp/capture
ok "replay by the module" sh -c 'collnoise replay /tmp/capture -c 1 -d 1s --json >/tmp/replayed'
holds "its events came" '.cpus[0].events > 50' /tmp/replayed

ok "calibrate" sh -c 'collnoise calibrate -c 1 -d 4s --json >/tmp/calibrated'
holds "every event of twice the threshold is found" '.recall_twice_threshold >= 0.999' /tmp/calibrated
holds "every model is injected and found" 'all(.injector[]; .injected > 0 and .recall > 0.9)' /tmp/calibrated
note '.injected_as, .recall_twice_threshold, [.injector[] | [.model, .asked_share, .injected_share,
	.seen_share, .late.p50_ns, .recall]]' /tmp/calibrated

# ---- colld: tasks by the module's rules ------------------------------------------------------

cpus_of() {	# PID
	while read -r key value; do
		[ "$key" = Cpus_allowed_list: ] && echo "$value"
	done <"/proc/$1/status"
}
is() {		# WHAT GOT WANTED
	ok "$1" test "$2" = "$3"
}

echo 'housekeeping 0
application 1
pin comm=sleep' >/tmp/policy
sleep 100 &
one=$!
before=$(cpus_of $one)
colld --policy /tmp/policy --state /tmp/state --metrics 0 2>/tmp/said &
daemon=$!
sleep 2
is "a task that is there goes where the policy says" "$(cpus_of $one)" 0
sleep 100 &
two=$!
sleep 0.1
is "one that comes later too, at once" "$(cpus_of $two)" 0
kill -9 $daemon
sleep 0.5
is "when colld is killed they stay" "$(cpus_of $one)" 0
colld --policy /tmp/policy --state /tmp/state --metrics 0 2>/tmp/said &
daemon=$!
sleep 2
is "another takes over" "$(cpus_of $two)" 0
kill $daemon
wait $daemon
is "told to end, it puts back what was" "$(cpus_of $one)" "$before"
kill $one $two
