# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that look at a job of tests/multi/hang from outside: sourced after tap.sh.
. "$(dirname "$0")/../lib/live_job.sh"
ranks=3

# hang NAME=VALUE ...: starts $ranks ranks of what $what and $more say, by $wrap if it is a command.
wrap=
hang() {
	live "$@" timeout -k 1 60 "$COLL" run -q -k -n $ranks --bind none --no-prefix -- \
		$wrap "$BUILD/tests/multi/hang" $what $more
}

# names WHY RANK: the cause of the job.
names() {
	"$COLL" show --json "$job" >"$work/show" 2>/dev/null &&
		jq -e ".jobs[0].cause | .why == \"$1\" and .rank == $2" "$work/show"
}
