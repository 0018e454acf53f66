#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks of one node in containers: each kind of namespace by itself, for one rank of three. They
# share memory where the network is the same; what may not be read goes through the ring; results
# are right, and COLL_EXPLAIN says which links are what.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/rank" <<-'EOF'
	#!/bin/sh
	how=$1
	shift
	[ "$COLL_RANK" = 1 ] && exec unshare $how "$@"
	exec "$@"
EOF
chmod +x "$work/rank"

right() {	# RANKS-SCRIPT-OPTION
	COLL_EXPLAIN=1 timeout 100 "$COLL" run -t 90 -n 3 --no-prefix -- "$work/rank" "$1" \
		"$COLL" bench allreduce --size 8,1500K --algo rabenseifner,ring --iterations 6 --counters \
		--json >"$work/out" 2>"$work/err" &&
		grep -q '"wrong": 0' "$work/out" && ! grep -q '"wrong": [1-9]' "$work/out"
}
said() {	# TEXT
	grep -q "$1" "$work/err" || { sed 's/^/# /' "$work/err"; return 1; }
}

for how in --mount --uts --ipc --cgroup "--pid --fork" "--user --map-root-user" \
		"--user --map-root-user --pid --fork --ipc --mount"; do
	if ! unshare $how true 2>/dev/null; then
		skip "unshare $how" "not allowed here"
		continue
	fi
	ok "unshare $how: results are right" right "$how"
	ok "unshare $how: links through memory" said 'links: 2 through memory'
done

# Another network is another node: what connects them is TCP.
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
	COLL_EXPLAIN=1 timeout 100 "$COLL" lab -t 90 -c 1+1 -- "$COLL" bench allreduce --size 8 \
		--iterations 5 >"$work/out" 2>"$work/err"
	ok "networks of their own: over TCP" said 'links: 1 over TCP'
else
	skip "networks of their own" "not allowed here"
fi
tap_end
