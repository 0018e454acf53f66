#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Every algorithm of every collective is under way when a rank dies or stops, or when the WAN
# is cut: on each survivor each algorithm fails within the deadline and names a lost rank; after
# a cut, a rank of the other side.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# In a process namespace of its own LeakSanitizer finds nothing to look at, and gives up.
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"

# All algorithms start at once: under the sanitizers, on a busy machine, that takes seconds.
deadline=3 slack=3
[ -z "$SANITIZE" ] || deadline=8
export COLL_DEADLINE=${deadline}s

# Lines "rank R: COLLECTIVE ALGORITHM: T s: words", of which the first rank counts. A survivor
# that came to the call later than the one who names it was late indeed: so may a few be named.
told() {	# RANKS... : who survives, and whom each may name
	awk -v most=$((deadline + slack)) -v names="$*" '
	BEGIN {
		ranks = split(names, each, " ")
		for (i = 1; i <= ranks; i++) {
			split(each[i], pair, ":")
			pattern[pair[1]] = "[" pair[2] "]"
		}
	}
	/^rank [0-9]+: [a-z_]+ [a-z-]+: [0-9.]+ s: / {
		rank = $2 + 0
		if (!(rank in pattern))
			next
		said[rank]++
		took[rank, $3, $4] = $5
		words = $0
		sub(/^[^:]*:[^:]*:[^:]*: /, "", words)
		name = match(words, /rank [0-9]+/) ? substr(words, RSTART + 5, RLENGTH - 5) : ""
		if ($5 <= most && name ~ ("^" pattern[rank] "$"))
			next
		doubts[++doubtful] = $0
		late[doubtful] = $5 <= most && name in pattern ? name SUBSEP $3 SUBSEP $4 : ""
		time[doubtful] = $5
	}
	END {
		for (i = 1; i <= doubtful; i++) {
			if (late[i] in took && took[late[i]] <= time[i] - 0.2 && ++excused <= 8)
				continue
			print "# wrong: " doubts[i]
			wrong = 1
		}
		for (rank in pattern)
			if (said[rank] < 80)
				wrong = 1
		exit wrong
	}' "$work/said" || { head -5 "$work/said"; return 1; }
}

# Whether the ranks' last calls of some algorithm began so far apart.
spread() {
	awk -v most=$deadline '
	/^rank [0-9]+: [a-z_]+ [a-z-]+: [0-9.]+ s: / {
		key = $3 " " $4
		if (!(key in least) || $5 < least[key])
			least[key] = $5
		if ($5 > longest[key])
			longest[key] = $5
	}
	END {
		for (key in least)
			if (longest[key] - least[key] > most / 2)
				exit 0
		exit 1
	}' "$work/said"
}

# Once more where a survivor came to a call half a deadline after the others: it is late, too.
strike() {	# ENGINE WAY
	for try in 1 2; do
		COLL_CLUSTERS=2+2 COLL_ENGINE=$1 timeout -s KILL 60 "$COLL" run -q -k -n 4 -t 50 \
			--no-prefix -- "$BUILD/tests/multi/every_algorithm_until_failure" "$2" 3 \
			>"$work/said" 2>&1
		spread || break
	done
	! grep refused "$work/said" && told 0:3 1:3 2:3
}
ok "a rank dies in the middle of every algorithm, uring" silent strike uring kill
ok "... with epoll" silent strike epoll kill
ok "a rank stops in the middle of every algorithm, uring" silent strike uring stop
ok "... with epoll" silent strike epoll stop

if ! "$COLL" lab -c 1 -t 10 -- true 2>"$work/why"; then
	ok "the WAN is cut # SKIP no network namespaces here: $(head -1 "$work/why")" true
	tap_end
	exit 0
fi

# Cut when all are under way: to make the groups alone takes seconds on a busy machine. Once more
# where a rank came late to a call: see strike().
cut() {	# ENGINE STREAMS
	for try in 1 2; do
		rm -f "$work/now"
		COLL_ENGINE=$1 COLL_WAN_STREAMS=$2 "$COLL" lab -t 70 -c 2+2 --delay 1ms \
			--down "wan@$work/now" -- "$BUILD/tests/multi/every_algorithm_until_failure" \
			tell "$work/now" >"$work/said" 2>&1
		spread || break
	done
	! grep 'too early' "$work/said" && told 0:23 1:23 2:01 3:01
}
ok "the WAN is cut in the middle of every algorithm, uring" silent cut uring 1
ok "... with epoll and 2 streams per link" silent cut epoll 2
tap_end
