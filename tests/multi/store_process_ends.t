#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Without `coll run` the store of rank 0 is a process of its own. It ends when all other ranks
# have given up a stopped rank and are gone. It serves several programs, one after the other.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
cp "$COLL" "$work/coll"		# its processes are known by their path
cp -r "$BUILD/libexec" "$work"
pids=
trap 'kill -KILL $pids 2>/dev/null; wait; rm -rf "$work"' EXIT

start() {	# RANK
	RANK=$1 WORLD_SIZE=3 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=3 TORCHELASTIC_RUN_ID=alone$$ \
		COLL_EXPLAIN=1 COLL_DEADLINE=5s "$work/coll" bench barrier --time 100 \
		>"$work/said.$1" 2>&1 &
	pids="$pids $!"
}

runs() {	# PIDS: these and no others
	[ "$(pgrep -f "^$work/" | sort -n | tr '\n' ' ')" = "$1 " ]
}

alone() {	# RANK
	pids=
	for rank in 0 1 2; do
		start $rank
	done
	ok "rank $1 is to stand still: the ranks are at work" \
		soon 60 grep -q 'coll: barrier of' "$work/said.0"
	stopped=$(echo $pids | cut -d ' ' -f $(($1 + 1)))
	kill -STOP "$stopped"
	ok "rank $1 stands still: nothing else is left" soon 60 runs "$stopped"
	kill -KILL "$stopped"
	wait
	rm -f "$work"/said.*
}
alone 1
alone 0

# A script of several programs, as under mpirun: rank 0 is the last to leave each, and to begin the next.
cp "$BUILD/tests/multi/boot_meet" "$work/meet"
programs() {	# RANK STAYS LATE
	RANK=$1 WORLD_SIZE=3 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=3 TORCHELASTIC_RUN_ID=several$$ \
		sh -c 'for program in 1 2 3; do "$0" 20 1 $1 || exit; sleep $2; done' "$work/meet" "$2" "$3" \
		>"$work/said.$1" 2>&1 &
}
programs 0 1 2
programs 1 0 0
programs 2 0 0
wait
is "the store of the first program serves the next: rank 0 may be another process" \
	"$(cat "$work"/said.* | grep -c 'met all')" 9
grep -h failed "$work"/said.* | sed 's/^/# /'
none_runs() { ! pgrep -f "^$work/" >/dev/null; }
ok "... and ends with the last of them" soon 20 none_runs
tap_end
