#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks of one node in containers: each kind of namespace by itself, for one rank of three; and what
# else may set it apart. They share memory where the network is the same; what may not be read goes
# through the ring; where no Unix socket leads to the rank TCP does. Results are right, and COLL_EXPLAIN
# says which links are what.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/rank" <<-'EOF'
	#!/bin/sh
	apart=$1 how=$2
	shift 2
	[ "$COLL_RANK" = "$apart" ] && exec $how "$@"
	exec "$@"
	EOF
cat >"$work/other-boot" <<-'EOF'
	#!/bin/sh
	mount --bind "${0%/*}/boot" /proc/sys/kernel/random/boot_id && exec "$@"
	EOF
echo 01234567-89ab-cdef-0123-456789abcdef >"$work/boot"
chmod +x "$work/rank" "$work/other-boot"

right() {	# HOW-RANK-1-IS-STARTED [ANOTHER-RANK]
	COLL_EXPLAIN=1 timeout 100 "$COLL" run -t 90 -n 3 --no-prefix -- "$work/rank" "${2:-1}" "$1" \
		"$COLL" bench allreduce --size 8,1500K --algo rabenseifner,ring --iterations 6 --counters \
		--json >"$work/out" 2>"$work/err" &&
		grep -q '"wrong": 0' "$work/out" && ! grep -q '"wrong": [1-9]' "$work/out"
}
said() {	# TEXT
	grep -q "$1" "$work/err" || { sed 's/^/# /' "$work/err"; return 1; }
}

# What rank 1 reads in others, of messages that are longer than a ring, so that they are to be read. One
# that may not is refused once by each of two ranks, and asks for no more.
reads() {	# COMPARISON NAMESPACES
	right "strace -f -o $work/calls -e trace=process_vm_readv unshare $2" || return 1
	read=$(grep -c 'process_vm_readv.* = [1-9]' "$work/calls")
	refused=$(grep -c 'process_vm_readv.* = -1' "$work/calls")
	echo "# $read reads, $refused refused"
	[ "$read" "$1" 0 ] && [ "$refused" -le 2 ]
}
# Buffers of coll_alloc(), with rank 1 apart: they are mapped, whoever may read in whom.
maps() {	# NAMESPACES
	timeout 100 "$COLL" run -t 90 -n 2 --no-prefix -- "$work/rank" 1 "unshare $1" \
		"$COLL" bench allreduce --size 1500K --algo rabenseifner --warmup 0 --iterations 6 \
		--buffers alloc --counters --json >"$work/out" 2>"$work/err" &&
		grep -q '"wrong": 0' "$work/out" && grep -q '"mapped_bytes": [1-9]' "$work/out"
}
traced=
if strace -f -o "$work/calls" true 2>/dev/null; then
	traced=yes
fi

for how in --mount --uts --ipc --cgroup "--pid --fork" "--user --map-root-user" \
		"--user --map-root-user --pid --fork --ipc --mount"; do
	if ! unshare $how true 2>/dev/null; then
		skip "unshare $how" "not allowed here"
		continue
	fi
	ok "unshare $how: results are right" right "unshare $how"
	ok "unshare $how: links through memory" said 'links: 2 through memory'
	ok "... it reads where it has mapped" maps "$how"
	case $how in
	*--user* | *--pid*) compare=-eq what="by the ring, it reads in nobody" ;;
	*) compare=-gt what="it reads in others" ;;
	esac
	if [ "$traced" ]; then
		ok "unshare $how: $what" reads $compare "$how"
	else
		skip "unshare $how: $what" "strace cannot trace here"
	fi
done

# Rank 0 explains its links: to one that is apart, or its own.
goes_over_tcp() {	# WHAT HOW
	ok "$1: results are right" right "$2"
	ok "... over TCP, the others through memory" said 'links: 1 through memory, 1 over TCP'
	ok "... rank 0: results are right" right "$2" 0
	ok "... over TCP alone" said 'links: 2 over TCP'
}

# A container's /proc may say what it likes: such a rank looks like one of another node.
if [ "$(id -u)" = 0 ] && unshare --mount "$work/other-boot" true 2>/dev/null; then
	goes_over_tcp "another boot id" "unshare --mount $work/other-boot"
else
	skip "another boot id" "no bind mount here"
fi

# No Unix socket leads to it; or it connects to none, which the lower rank does.
goes_over_tcp "without Unix sockets" "$BUILD/tests/multi/without_call unix_socket"
ok "... and it says why" said 'links: 2 over TCP [a-z]* (no Unix socket)'
ok "no connection to a Unix socket: results are right" right "$BUILD/tests/multi/without_call unix_connect" 0
ok "... over TCP" said 'links: 2 over TCP'

# Another network is another node: what connects them is TCP.
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
	COLL_EXPLAIN=1 timeout 100 "$COLL" lab -t 90 -c 1+1 -- "$COLL" bench allreduce --size 8 \
		--iterations 5 >"$work/out" 2>"$work/err"
	ok "networks of their own: over TCP" said 'links: 1 over TCP'
else
	skip "networks of their own" "not allowed here"
fi
tap_end
