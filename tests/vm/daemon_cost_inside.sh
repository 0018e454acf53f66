#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# In the test machine: daemon_cost_inside.sh PROCESSES SECONDS SETTLE.
export PATH=/bin SETTLE=$3 THREAD=coll-pin	# coll.ko's, which moves tasks
processes=$1 seconds=$2

tell() {	# WHAT COMMAND...
	what=$1
	shift
	if "$@"; then echo "ok - $what"; else echo "not ok - $what"; fi
}

# costs WHAT PROCESSES RATE LIMIT COMMAND...: at most LIMIT ppm of a core. Its line is in $line.
costs() {
	what=$1 beside=$2 rate=$3 limit=$4 line=
	shift 4
	daemon_cost "$beside" "$rate" "$seconds" "$@" >/tmp/out 2>/tmp/said
	tell "$what: it runs to the end" [ $? = 0 ]
	while read -r said; do echo "# $said"; done </tmp/said
	read -r line </tmp/out
	echo "# $what: $line"
	ppm=${line#* ppm=}
	tell "... and takes at most $limit ppm of a core" [ "${ppm%%.*}" -le "$limit" ]
	thread=${line#*thread_ppm=}
	tell "... and coll.ko's thread no more than that" [ "${thread%%.*}" -le "$limit" ]
}

i=1000
{
	echo "housekeeping 0"
	while [ $i -lt 2000 ]; do
		echo "pin comm=crowd${i#1}"
		i=$((i + 1))
	done
} >/tmp/policy

set -- colld --policy /tmp/policy --state /tmp/state --metrics 0
costs "colld, nothing changes" "$processes" 0 500 "$@"
moved=${line#*moved=}
tell "... and coll.ko has moved all of them" [ "${moved%% *}" = "$processes" ]
costs "colld, 100 processes a second come and go" "$processes" 100 10000 "$@"
