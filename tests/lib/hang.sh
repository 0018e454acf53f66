# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that look at a job of tests/multi/hang from outside: sourced after tap.sh.
work=$(mktemp -d)
jobs=
trap 'kill $jobs 2>/dev/null; wait; rm -rf "$work"' EXIT
ranks=3

# hang NAME=VALUE ...: starts $ranks ranks of what $what and $more say, by $wrap if it is a command; $job
# is the job's name.
wrap=
hang() {
	env "$@" timeout -k 1 60 "$COLL" run -q -k -n $ranks --bind none --no-prefix -- \
		$wrap "$BUILD/tests/multi/hang" $what $more >"$work/said" 2>"$work/err" &
	runner=$!
	jobs="$jobs $runner"
	soon 20 started
}

# timeout is the launcher's parent, so the job's name is not known: it is the one of our program.
started() {
	child=$(cat /proc/$runner/task/$runner/children 2>/dev/null)
	job=run-${child% }
	[ -n "$child" ] && "$COLL" show "$job" >/dev/null 2>&1
}

finish() {
	kill $runner 2>/dev/null
	wait $runner 2>/dev/null
	jobs=
}

# names WHY RANK: the cause of the job.
names() {
	"$COLL" show --json "$job" >"$work/show" 2>/dev/null &&
		jq -e ".jobs[0].cause | .why == \"$1\" and .rank == $2" "$work/show"
}
