#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Jobs on two hosts that have IPv6 addresses and no IPv4: two network namespaces with a cable.
. "$(dirname "$0")/../lib/tap.sh"
[ -e /proc/net/if_inet6 ] || {
	echo "1..0 # SKIP no IPv6 here"
	exit 0
}
. "$(dirname "$0")/../lib/hosts.sh"

COLL=$(realpath "$COLL")
MEET=$(realpath "$BUILD/tests/multi/boot_meet")
CALLS=$(realpath "$BUILD/tests/multi/every_collective")

host_make; far=$host
ip link set lo up
ip link add near type veth peer name far netns $far
ip link set near up
ip addr add fd00:c011::1/64 dev near nodad
nsenter -n -t $far sh -c 'ip link set far up; ip addr add fd00:c011::2/64 dev far nodad'
is "no host has an IPv4 address but loopback's" "$(ip -4 -o addr show scope global | wc -l)" 0

host_shell '*::2' $far
hosts='[fd00:c011::1]:2,[fd00:c011::2]:2'

out=$(timeout -k 5 60 "$COLL" run --hosts "$hosts" --ssh "$dir/shell" -- "$MEET" 20 2 2>&1)
is "coll run --hosts: the ranks meet twice" "$(printf '%s\n' "$out" | grep -c 'met all')" 8
ok "... and compute" quiet timeout -k 5 120 "$COLL" run --hosts "$hosts" --ssh "$dir/shell" -e COLL_DEADLINE=20s \
	-- "$CALLS"

# Another launcher: rank 0 starts the store.
secret=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
export COLL_RANKS=2 COLL_STORE='[fd00:c011::1]:4711' COLL_SECRET="$secret"
COLL_RANK=0 "$MEET" 20 >"$dir/0" 2>&1 & near=$!
COLL_RANK=1 nsenter -n -t $far "$MEET" 20 >"$dir/1" 2>&1
wait $near
is "COLL_STORE: rank 0 serves the store at its address" "$(cat "$dir/0" "$dir/1" | grep -c 'met all')" 2
tap_end
