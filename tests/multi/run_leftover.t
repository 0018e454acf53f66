#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Signals reach the ranks, and no process survives its job.
. "$(dirname "$0")/../lib/tap.sh"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

alive() {	# processes of job "$1": those with its mark in their environment
	grep -lsz "^RUN_LEFTOVER=$dir/$1\$" /proc/[0-9]*/environ | wc -l
}
gone() {	# within 20 s
	tries=400
	while [ "$(alive "$1")" != 0 ] && [ $tries -gt 0 ]; do
		sleep 0.05
		tries=$((tries - 1))
	done
	[ "$(alive "$1")" = 0 ]
}
# start NAME OPTIONS -- PROGRAM: in the background; waits until three ranks are up.
start() {
	name=$1
	shift
	: >"$dir/$name"
	# A background job ignores SIGINT, one under nohup SIGHUP, unless told otherwise.
	env --default-signal=INT,HUP $COLL run -n 3 -t 100 --env "RUN_LEFTOVER=$dir/$name" "$@" >"$dir/$name.out" 2>&1 &
	job=$!
	tries=400
	while [ "$(grep -c up "$dir/$name")" -lt 3 ] && [ $tries -gt 0 ]; do
		sleep 0.05
		tries=$((tries - 1))
	done
}
finish() {
	wait "$job"
	rc=$?
}

start kill -- sh -c 'sleep 60 & setsid sleep 60 & echo up >>$RUN_LEFTOVER; wait'
ok "ranks have started further processes" test "$(alive kill)" -ge 6
kill -9 "$job"
wait "$job" 2>/dev/null
ok "coll run killed: all end, also those in another session" gone kill

start fail -- sh -c 'sleep 60 & setsid sleep 60 & echo up >>$RUN_LEFTOVER; sleep 0.3; [ $COLL_RANK != 1 ] || exit 4; wait'
finish
is "a rank fails" "$rc" 4
ok "... no process remains, also none in another session" test "$(alive fail)" = 0

start well -- sh -c 'setsid sleep 60 & echo up >>$RUN_LEFTOVER'
finish
is "all ranks exit with 0" "$rc" 0
ok "... and no process remains" test "$(alive well)" = 0

for signal in USR1 USR2 HUP TERM INT; do
	start $signal --keep-going -- sh -c "trap 'echo got; exit 0' $signal; echo up >>\$RUN_LEFTOVER; while :; do sleep 0.05; done"
	kill -$signal "$job"
	finish
	is "SIG$signal reaches every rank" "$rc $(grep -c got "$dir/$signal.out")" "0 3"
done

start twice -- sh -c 'trap "" INT; echo up >>$RUN_LEFTOVER; while :; do sleep 0.05; done'
kill -INT "$job"
sleep 0.3
ok "ranks may ignore a SIGINT" test "$(alive twice)" -ge 3
kill -INT "$job"
finish
is "a second SIGINT kills them" "$rc" 137
ok "... all of them" test "$(alive twice)" = 0

start term -- sh -c 'echo up >>$RUN_LEFTOVER; exec sleep 60'
kill -TERM "$job"
finish
is "ranks killed by the launcher's SIGTERM" "$rc" 143

start stopped --timeout 1 --grace 0.5 -- sh -c 'echo up >>$RUN_LEFTOVER; kill -STOP $$; sleep 60'
finish
is "stopped ranks do not delay the end" "$rc" 124
ok "... and have ended" test "$(alive stopped)" = 0

tap_end
