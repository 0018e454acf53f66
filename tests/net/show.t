#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll show names a path that loses packets, from outside of the ranks' namespaces.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lab.sh"

# The lab's ranks, by their number: other jobs may be on this machine.
lost() {
	"$COLL" show --json >"$work/show" 2>/dev/null &&
		jq -e '[.jobs[] | select(.program == "hang" and .ranks == 2) | .cause |
			select(.why == "lost-path")] | length > 0' "$work/show"
}

# The link goes down when the ranks are there, on a machine with other things to do: else later.
lab_loses() {	# ENGINE
	for wait in 8 30; do
		COLL_ENGINE=$1 COLL_DEADLINE=90s "$COLL" lab -t $((wait + 40)) -c 1+1 --delay 1ms \
			--down 1@${wait}s -- "$BUILD/tests/multi/hang" path >"$work/said" 2>&1 &
		lab=$!
		sleep $wait
		soon 15 lost && return
		kill $lab
		wait $lab 2>/dev/null
	done
	return 1
}

for engine in uring epoll; do
	lab_loses $engine >/dev/null
	result $? "a link that goes down: its lost packets are the cause, $engine"
	like "... in words" "$(jq -r '.jobs[] | select(.program == "hang").cause.text' "$work/show")" \
		'packets to rank [01] are lost: [0-9]+ bytes are not acknowledged after [0-9]+ retrans'
	ok "... of ranks in other namespaces, with pids of this one" quiet kill -0 \
		"$(jq '.jobs[] | select(.program == "hang").rank[0].pid' "$work/show")"
	kill $lab
	wait $lab 2>/dev/null
done
tap_end
