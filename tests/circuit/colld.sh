# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Sourced: colld for a test, by the lines of $work/circuits.

# Sets $colld to its process; its log is appended to $work/colld.log. Waits until it answers.
# $colld_descriptors: so many file descriptors, if set.
start_colld() {
	${colld_descriptors:+prlimit --nofile="$colld_descriptors:$colld_descriptors"} \
		"$BUILD/colld" --circuits "$work/circuits" --metrics 0 --state "$work/state" \
		2>>"$work/colld.log" 5>&- &
	colld=$!
	for _ in $(seq 1 200); do
		"$COLL" circuit show --socket "$work/socket" >/dev/null 2>&1 && return
		kill -0 "$colld" 2>/dev/null || { cat "$work/colld.log"; return 1; }
		sleep 0.1
	done
	return 1
}
