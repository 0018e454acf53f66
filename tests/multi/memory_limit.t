#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks in a memory cgroup that has enough for them and not for their rings: no rank is killed where
# ranks over TCP are not, results are right, and COLL_EXPLAIN says which way the bytes go.
. "${0%/*}/../lib/tap.sh"
name=coll-test-$$ group=
work=$(mktemp -d)
trap 'rm -rf "$work"; [ -z "$group" ] || rmdir "$group"' EXIT
trap 'exit 1' HUP INT TERM

for root in /sys/fs/cgroup /sys/fs/cgroup/memory; do
	[ "$(id -u)" = 0 ] && mkdir "$root/$name" 2>/dev/null || continue
	if [ -e "$root/$name/memory.max" ] || [ -e "$root/$name/memory.limit_in_bytes" ]; then
		group=$root/$name
		break
	fi
	rmdir "$root/$name"
done
if [ -z "$group" ]; then
	echo "1..0 # SKIP no memory cgroup can be made here"
	exit 0
fi

limit() {	# MB; version 1 counts swapped memory in another file, which is never below the first
	if [ -e "$group/memory.max" ]; then
		echo "$1M" >"$group/memory.max"
		echo 0 >"$group/memory.swap.max"
	else
		echo -1 >"$group/memory.memsw.limit_in_bytes"
		echo "$1M" >"$group/memory.limit_in_bytes"
		echo "$1M" >"$group/memory.memsw.limit_in_bytes"
	fi 2>/dev/null
}
killed() {
	cat "$group/memory.events" "$group/memory.oom_control" 2>/dev/null | sed -n 's/^oom_kill //p'
}
buffers=plain
run() {	# RANKS MEMORY
	limit "$limit"
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
		timeout 60 env COLL_MEMORY="$2" COLL_EXPLAIN=1 "$COLL" run -t 55 -n "$1" --no-prefix -- \
		"$COLL" bench alltoall --size 64K --iterations 20 --json --buffers $buffers >"$work/out" 2>"$work/err" &&
		grep -q '"wrong": 0' "$work/out" && ! grep -q '"wrong": [1-9]' "$work/out"
}
said() {	# TEXT
	grep -q "$1" "$work/err" || { sed 's/^/# /' "$work/err"; return 1; }
}

# From where nobody is killed, in steps of a tenth.
least() {	# RANKS MEMORY
	limit=6
	until run "$1" "$2"; do
		[ $limit -lt 400 ] || return 1
		limit=$((limit + limit / 10 + 1))
	done
}
for ranks in 4 8; do
	ok "$ranks ranks over TCP find their least limit" least $ranks off
	echo "# $limit MB"
	# Where they may, they have a connection to each other rank: short calls are one-shot (exec/board.h).
	limit=$((limit + limit / 4))
	before=$(killed)
	ok "... with a quarter more they may share memory" run $ranks auto
	is "... and nobody is killed" "$(killed)" "$before"
	buffers=alloc
	ok "... with memory of coll_alloc(), too" run $ranks auto
	is "... and nobody is killed" "$(killed)" "$before"
	buffers=plain
	ok "... those that must not go over TCP, and say why" said "over TCP [a-z]* (the cgroup's memory)"
	limit=400
	ok "$ranks ranks with much: results are right" run $ranks auto
	ok "... all share memory" said "links: $((ranks - 1)) through memory"
done
is "nothing is left in the cgroup" "$(cat "$group/cgroup.procs")" ""
tap_end
