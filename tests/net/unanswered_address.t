#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A host has an address at which nothing answers, as behind a firewall that drops: ranks connect at another one
# long before their deadline. Two network namespaces with two cables, one of which carries nothing.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"

COLL=$(realpath "$COLL")

host_make; far=$host
ip link set lo up
for cable in 1 2 3; do
	ip link add near$cable type veth peer name far$cable netns $far
	ip link set near$cable up
	ip addr add 10.77.$cable.1/24 dev near$cable
	nsenter -n -t $far sh -c "ip link set far$cable up; ip addr add 10.77.$cable.2/24 dev far$cable"
done
# Nobody has this hardware address.
for cable in 2 3; do
	ip neigh replace 10.77.$cable.2 lladdr 02:00:00:00:00:99 dev near$cable nud permanent
	nsenter -n -t $far ip neigh replace 10.77.$cable.1 lladdr 02:00:00:00:00:99 dev far$cable nud permanent
done
host_shell '10.77.*.2' $far

begun=$(date +%s)
out=$(timeout -k 5 100 "$COLL" run --hosts 10.77.1.1,10.77.1.2 --ssh "$dir/shell" -e COLL_DEADLINE=60s -- \
	"$COLL" bench barrier --time 1 2>&1)
status=$?
ok "ranks whose first addresses do not answer compute" test $status -eq 0
[ $status -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
took=$(($(date +%s) - begun))
ok "... in a fraction of the deadline: $took s" test $took -le 20
tap_end
