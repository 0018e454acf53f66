# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For script tests: . "$(dirname "$0")/../lib/tap.sh"; then ok, is, like; last: tap_end.
BUILD=${BUILD:-build}
# A make that a test runs is its own master: it must not ask for the outer one's job slots.
unset MAKEFLAGS MFLAGS MAKELEVEL
COLL=$BUILD/coll
tap_count=0

# ok WHAT COMMAND...: the command succeeds.
ok() {
	tap_what=$1
	shift
	tap_count=$((tap_count + 1))
	if "$@"; then
		echo "ok $tap_count - $tap_what"
	else
		echo "not ok $tap_count - $tap_what"
		printf '%s\n' "failed: $*" | sed 's/^/# /'
	fi
}

# thrice COMMAND...: where a machine has noise of its own, of which there may be more at times.
thrice() { "$@" || "$@" || "$@"; }

# is WHAT GOT WANTED
is() {
	ok "$1" test "$2" = "$3"
}

# like WHAT TEXT PATTERN: some line matches the extended regular expression.
tap_like() {
	printf '%s\n' "$1" | grep -Eq -e "$2"
}
like() {
	ok "$1" tap_like "$2" "$3"
}

# What a machine with nothing else to do keeps to (QUIET=1), and what any machine does:
# tolerances in time are for the first, what no delay excuses is for the second.
limit() {	# QUIET ANY
	if [ -n "$QUIET" ]; then
		echo "$1"
	else
		echo "$2"
	fi
}

# skip WHAT WHY
skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# exits WANTED COMMAND...: with that code, in time; what it says is in $work/out and $work/err.
exits() {
	tap_wanted=$1
	shift
	timeout 300 "$@" >"$work/out" 2>"$work/err"
	[ $? -eq "$tap_wanted" ]
}

# found PATTERN FILE: a line of $work/FILE is like it.
found() {
	grep -Eq -- "$1" "$work/$2"
}

# holds WHAT FILTER [FILE]: jq's answer is true. Of an empty file jq says nothing, and no error.
tap_holds() {
	[ -s "$2" ] && jq -e "$1" "$2"
}
holds() {
	ok "$1" quiet tap_holds "$2" "${3:-$work/out}"
}

# result STATUS WHAT: of a line of commands that kept what they said.
result() {
	ok "$2" test "$1" -eq 0
	[ "$1" -eq 0 ] || cat "$work/out" "$work/err" 2>/dev/null | head -40 | sed 's/^/# /'
}

# quiet COMMAND...: what it says is shown only if it fails.
quiet() {
	tap_said=$("$@" 2>&1) && return
	printf '%s\n' "$tap_said" | tail -20 | sed 's/^/# /'
	return 1
}

# silent COMMAND...: it succeeds and says nothing.
silent() {
	tap_said=$("$@" 2>&1) && [ -z "$tap_said" ] && return
	printf '%s\n' "$tap_said" | head -20 | sed 's/^/# /'
	return 1
}

# soon SECONDS COMMAND...: it succeeds by then.
soon() {
	tap_tries=$(($1 * 10))
	shift
	until "$@"; do
		[ $tap_tries -gt 0 ] || return 1
		sleep 0.1
		tap_tries=$((tap_tries - 1))
	done
}

tap_end() {
	echo "1..$tap_count"
}
