# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that look at a job from outside while it runs: sourced after tap.sh.
work=$(mktemp -d)
jobs=
trap 'kill $jobs 2>/dev/null; wait; rm -rf "$work"' EXIT

# live NAME=VALUE ... timeout ... coll run ...: starts a job; $job is its name.
live() {
	env "$@" >"$work/said" 2>"$work/err" &
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
