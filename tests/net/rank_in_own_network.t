#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# One rank of three has a network of its own on the same machine, as a container has: the same boot id,
# and no abstract socket in common. It is another node's; TCP leads to it, and the others share memory.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"

COLL=$(realpath "$COLL")
host_make; far=$host
ip link set lo up
ip link add near type veth peer name far netns $far
ip link set near up
ip addr add 10.78.0.1/24 dev near
nsenter -n -t $far sh -c 'ip link set far up; ip addr add 10.78.0.2/24 dev far'

right() {	# HOSTS PATTERN-OF-THE-FAR-HOST
	host_shell "$2" $far
	timeout -k 5 100 "$COLL" run --hosts "$1" --ssh "$dir/shell" -e COLL_EXPLAIN=1 --no-prefix -- \
		"$COLL" bench allreduce --size 8,1500K --algo rabenseifner,ring --iterations 6 --json \
		>"$dir/out" 2>"$dir/err" &&
		grep -q '"wrong": 0' "$dir/out" && ! grep -q '"wrong": [1-9]' "$dir/out"
}
said() {	# TEXT
	grep -q "$1" "$dir/err" || { sed 's/^/# /' "$dir/err"; return 1; }
}

ok "rank 2 in a network of its own: results are right" right 10.78.0.1:2,10.78.0.2:1 '*.2'
ok "... over TCP, the others through memory" said 'links: 1 through memory, 1 over TCP'
ok "rank 0 in a network of its own: results are right" right 10.78.0.2:1,10.78.0.1:2 '*.2'
ok "... over TCP alone" said 'links: 2 over TCP'

# Where nothing leads to it the job ends, and names it.
timeout -k 5 60 env COLL_DEADLINE=5s "$COLL" run -t 50 -n 3 --no-prefix -- sh -c \
	'[ "$COLL_RANK" = 1 ] && exec unshare -n "$@"; exec "$@"' sh "$COLL" bench barrier >"$dir/out" 2>"$dir/err"
is "a network without a way: the job fails" $? 1
ok "... and names the rank" said 'rank 1 of 3 of job .* did not join in time'
tap_end
