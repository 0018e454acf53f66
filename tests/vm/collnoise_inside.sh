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

comes() {	# WHAT COMMAND...	within twenty seconds
	what=$1
	shift
	tries=200
	until "$@" || [ $((tries -= 1)) = 0 ]; do sleep 0.1; done
	ok "$what" "$@"
}

# What the plan has for the time that it ran: each event is in one of these.
whole='.cpus[0] | .planned > 0 and .events + .lost + .merged + .refused >= .planned and .events > 0'

note() {	# FILTER FILE
	echo "# $(jq -c "$1" "$2")"
}

ok "measure" sh -c 'collnoise measure -c 1 -d 1s -T 1us --json >/tmp/plain'
holds "the module says who" '.explained and .module == "loaded"' /tmp/plain
holds "the timer's interrupt is among them" 'any(.who[]; .cause == "irq" and .events > 0)' /tmp/plain
note '[.who[] | [.cause, .name, .events, .total_ns]] | .[:8]' /tmp/plain

ok "inject by the module" sh -c \
	'collnoise inject periodic:period=10ms,duration=1ms -c 1 -d 60s --json >/tmp/injected &
	sleep 1
	collnoise measure -c 1 -d 2s -T 1us --warm-up 0.3s --json >/tmp/measured
	kill -INT $!
	wait'
holds "as asked" ".context == \"hardirq\" and .cpus[0].duration_error.p50_ns >= 0 and ($whole)" /tmp/injected
holds "the kernel says what was injected, to the loop too" 'any(.sources[]; .cause == "injected" and
	.times > 0 and .total_ns >= .times * 0.99e6) and any(.who[]; .cause == "injected")' /tmp/measured
note '[.who[] | [.cause, .name, .events, .total_ns]] | .[:8]' /tmp/measured
note '.cpus[0]' /tmp/injected

# ---- latencies and thresholds -------------------------------------------------------------------

ok "latency" sh -c 'collnoise latency -c 1 -d 1s --json >/tmp/latency'
holds "by the module, with timer and thread" '.by == "module" and (.cpus | length) == 1 and
	(.cpus[0] | .thread.count > 10 and .timer.count > 10 and .timer.p50_ns <= .thread.p50_ns and
	 .thread.p50_ns <= .thread.p99_ns and .thread.p99_ns <= .thread.max_ns)' /tmp/latency
holds "the histogram has them all" '.cpus[0].thread | ([.histogram[].count] | add) >= .count' /tmp/latency
holds "the longest say who had the time" '(.longest | length) > 0 and all(.longest[];
	([.parts[].ns] | add) == .total_ns)' /tmp/latency
note '.cpus[0] | {timer, thread} | map_values(del(.histogram))' /tmp/latency
ok "as a table" sh -c 'collnoise latency -c 1 -d 0.5s >/tmp/said; read -r line </tmp/said; test "$line"'
ok "from user space, beside the module" sh -c 'collnoise latency --user -c 1 -d 0.5s --json >/tmp/latency'
holds "without the timer" '.by == "user" and (.cpus[0] | .thread.count > 10 and (has("timer") | not))' /tmp/latency

stopped() {	# COMMAND...: ends by a threshold, while 8 ms are injected every 50 ms
	collnoise inject periodic:period=50ms,duration=8ms -c 1 -d 300s >/dev/null &
	injector=$!
	sleep 1
	"$@" >/tmp/stopped
	code=$?
	kill -INT $injector
	wait $injector
	[ $code = 2 ]
}
# The host takes some ms now and then, too: the right one of ten.
until_injected() {	# COMMAND...
	tries=10
	until stopped "$@" && jq -e '.passed.case.parts[0].cause == "injected"' /tmp/stopped >/dev/null; do
		[ $((tries -= 1)) -gt 0 ] || return 1
	done
}
ok "latency -s stops at what was injected, exit code 2" until_injected collnoise latency -c 1 -d 60s -s 5ms --json
holds "with its time and the stack of its CPU" '.stopped_by_threshold and .passed.threshold_ns == 5e6 and
	(.passed.case | .total_ns > 5e6 and .cpu == 1) and any(.passed.stack[]; test("noise_timer"))' /tmp/stopped
ok "so does measure -s" until_injected collnoise measure -c 1 -d 60s -s 5ms --warm-up 0.3s -T 1us --json -q
holds "with the stack" '.stopped_by_threshold and any(.passed.stack[]; test("noise_timer"))' /tmp/stopped
note '.passed' /tmp/stopped

for context in softirq fifo other; do
	ok "inject as $context" sh -c \
		"collnoise inject poisson:rate=200,duration=200us --context $context -c 1 -d 1s --json >/tmp/injected"
	holds "events came" "$whole" /tmp/injected
done
ok "what the module refuses" sh -c \
	'! collnoise inject periodic:period=10ms,duration=9ms --max-share 50% -c 1 -d 1s 2>/tmp/refusal'
ok "is refused in words" jq -Rse 'test("max-share|share")' /tmp/refusal

printf '1000000\t200000\n5000000\t100000\n# Measurement period: 0.01 s\n' >/tmp/capture
ok "replay by the module" sh -c 'collnoise replay /tmp/capture -c 1 -d 1s --json >/tmp/replayed'
holds "its events came" "$whole" /tmp/replayed

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

runs_on() {	# PID CPUS
	[ "$(cpus_of "$1")" = "$2" ]
}
is_called() {	# PID COMM
	[ "$(cat "/proc/$1/comm")" = "$2" ]
}
start_colld() {
	colld --policy /tmp/policy --state /tmp/state --metrics 9469 2>/tmp/said &
	daemon=$!
}
serves() {	# colld: it does when its policy is in force
	jq -Rse 'test(":24FD [0:]+ 0A ")' /proc/net/tcp >/dev/null
}

echo 'housekeeping 0
application 1
pin comm=sleep' >/tmp/policy
sleep 1000 &
one=$!
comes "a task" is_called $one sleep
before=$(cpus_of $one)
start_colld
comes "is there, and goes where the policy says" runs_on $one 0
comes "colld is ready" serves
kill -STOP $daemon	# what is moved now, is by the module
sleep 1000 &
two=$!
comes "one that comes later" is_called $two sleep
comes "is moved too, with nobody else about" runs_on $two 0
kill -CONT $daemon
kill -9 $daemon
wait $daemon 2>/dev/null
is "when colld is killed they stay" "$(cpus_of $one)" 0
start_colld
comes "another one starts" serves
is "and takes over" "$(cpus_of $two)" 0
kill $daemon
wait $daemon
is "told to end, it puts back what was" "$(cpus_of $one)" "$before"
kill $one $two

# ---- collnoise pin: the same rules, with nobody about ------------------------------------------

sleep 1000 &
one=$!
comes "a task" is_called $one sleep
before=$(cpus_of $one)
# In a session of its own: what the caller's parent has started is kept.
echo 'collnoise pin init --module -c 1 -H 0 --rule "pin comm=sleep" --state /tmp/pin --json >/tmp/pinned' >/tmp/begin
ok "pin by the module" setsid -w sh -c 'sh /tmp/begin; true'
holds "which counts" '.module.matched >= 1 and .module.moved >= 1' /tmp/pinned
is "a task is moved" "$(cpus_of $one)" 0
sleep 1000 &
two=$!
comes "another comes" is_called $two sleep
comes "and is moved, too" runs_on $two 0
ok "pinned twice" sh -c '! collnoise pin init --module -c 1 -H 0 --state /tmp/pin 2>/tmp/said'
ok "back" collnoise pin fini --state /tmp/pin
is "what was is" "$(cpus_of $one)" "$before"
is "for the other one, too" "$(cpus_of $two)" "$before"
kill $one $two
