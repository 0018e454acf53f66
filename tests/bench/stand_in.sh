#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Who waits for ranks whose tasks are held, by what makes progress for them: 4 nodes (namespaces) of 2 ranks, netem's
# 5 ms between them, an allreduce of 8 bytes. It runs in the emulated machine whose time is what was executed
# (tests/vm/run -i): the load of this one has no influence.
#
#	tests/bench/stand_in.sh [SECONDS [PROGRESS ...]]	# of the emulated machine, each: 15; call kernel
#
# Each with nobody held; with a rank of each node (0, 3, 4, 7) held for 20 ms from 2 ms after the beginning of each
# call; and with these held 10 times a second at random. Held is the rank's task alone, as by whatever
# takes its core. Prints the mean, median and p99 of a call until the last of the other ranks has the
# result, and until all have it.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
seconds=${1:-15}
[ $# -eq 0 ] || shift
out=$build/bench
mkdir -p "$out"

scene() {	# NAME PROGRESS OPTION...
	echo "$1, progress=$2:"
	arguments="COLL_PROGRESS=$2 COLL_MEASURE=off COLL_DEADLINE=60s COLL_STORE_PROGRAM=/bin/coll-store"
	shift 2
	tests/vm/lab_run -i -t 580 -s 550 -p "$build/tests/bench/late_rank" -a "$arguments" 6.12 \
		"coll lab -c 1+1+1+1 --each 2 --no-clusters --by netem --delay 5ms -t 500 -- late_rank $* $seconds 0+3+4+7 \
butterfly leader lanes replicas" >"$out/stand_in.tap"
	sed -n 's/^# coll: //p' "$out/stand_in.tap" | awk -f tests/bench/late_rank.awk && return
	cat "$out/stand_in.tap" >&2
	exit 1
}

for progress in ${*:-call kernel}; do
	scene "nobody is held" "$progress"
	scene "held for 20 ms in each call" "$progress" -d 20 -a 2
	scene "held for 20 ms, 10 times a second" "$progress" -d 20 -r 10
done
