# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What each launcher has to do with a program of libcoll's; the caller has made $work.

said() {	# PATTERN FILE
	grep -Eq -e "$1" "$2"
}

no_process() {	# PID
	! kill -0 "$1" 2>/dev/null
}

none_runs() {	# PROGRAM
	! pgrep -f "^$1 " >/dev/null
}

# by NAME CODE LAUNCHER...: it starts as many ranks as the number behind it says, and exits
# with CODE where they exit with 2. It is ended by itself, at no set time: whoever ended it
# by a time-out and SIGKILL would leave ranks that no launcher can end.
by() {
	name=$1 code=$2
	shift 2
	copy=$work/$tap_count.coll	# its ranks are known by their path
	cp "$COLL" "$copy"
	cp -r "$BUILD/libexec" "${copy%/*}"
	answer=$(timeout -k 5 100 "$@" 4 "$copy" bench barrier --time 0.1 2>&1)
	is "$name: coll bench ends well" $? 0
	like "$name: on 4 ranks" "$answer" 'barrier, 4 ranks'
	timeout -k 5 100 "$@" 2 "$copy" bench nonsense >/dev/null 2>&1
	is "$name: its exit code is handed on" $? "$code"
	: >"$work/said"
	COLL_EXPLAIN=1 "$@" 4 "$copy" bench barrier --time 100 >"$work/said" 2>&1 &
	launcher=$!
	ok "$name: its ranks are at work" soon 60 said 'coll: barrier of' "$work/said"
	kill -TERM "$launcher"
	ok "$name: ended, it ends" soon 60 no_process "$launcher"
	ok "$name: and leaves nothing" soon 60 none_runs "$copy"
	# Nothing of a failure is left to the next.
	for pid in "$launcher" $(pgrep -f "^$copy "); do
		kill -KILL "$pid" 2>/dev/null
	done
	wait "$launcher" 2>/dev/null
}
