#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What colld takes of a core, without the module, beside many sleeping processes with as many rules
# as they have names, while nothing changes and while processes come and go. COLL_TEST_LONG=1: 10^4
# processes, and a daemon beside it that only wakes once a second.
. "$(dirname "$0")/../lib/tap.sh"
colld=$BUILD/colld
cost=$BUILD/tests/load/daemon_cost
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$(nproc)" -lt 2 ]; then
	echo "1..0 # SKIP one CPU: there is nowhere to go"
	exit 0
fi
{
	echo "housekeeping $(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')"
	for number in $(seq -f %03g 0 999); do echo "pin comm=crowd$number"; done
} >"$work/policy"

# costs WHAT PROCESSES RATE LIMIT COMMAND...: at most LIMIT ppm of a core.
costs() {
	what=$1 processes=$2 rate=$3 limit=$4
	shift 4
	SETTLE=$settle timeout 600 "$cost" "$processes" "$rate" "$seconds" "$@" >"$work/out" 2>"$work/said"
	status=$?
	sed "s/^/# $what: /" "$work/out"
	is "$what: it runs to the end" $status 0
	ppm=$(sed -n 's/.* ppm=\([0-9]*\).*/\1/p' "$work/out")
	ok "... and takes at most $limit ppm of a core" test "${ppm:-1000000}" -le "$limit"
}

if [ -n "$COLL_TEST_LONG" ]; then
	processes=10000 seconds=60 settle=30
else
	processes=1500 seconds=6 settle=6
fi

set -- "$colld" --policy "$work/policy" --state "$work/state" --metrics 0
[ -z "$COLL_TEST_LONG" ] || costs "a loop that sleeps for a second" 0 0 1000 \
	perl -e 'sleep 1 while 1'
costs "colld, nothing changes" $processes 0 10000 "$@"
is "... and every process is where the policy wants it" \
	"$(sed -n 's/.* moved=\([0-9]*\).*/\1/p' "$work/out")" $processes
costs "colld, 100 processes a second come and go" $processes 100 40000 "$@"
tap_end
