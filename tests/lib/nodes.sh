# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Four nodes of four ranks, for scripts that source tap.sh first: network namespaces at a switch.
# $pids are processes of them, the interface of each is nic; job runs a program on all ranks.
. "$(dirname "$0")/../lib/hosts.sh"

COLL=$(realpath "$COLL")
nodes=4 each=4 hosts_seconds=900

ip link add switch type bridge 2>/dev/null || {
	echo "1..0 # SKIP no bridge in this kernel"
	exit 0
}
ip link set lo up
ip link set switch up
ip addr add 10.77.0.254/24 dev switch
hosts= shells= pids=
for k in $(seq $nodes); do
	host_make
	pids="$pids $host"
	ip link add "port$k" type veth peer name nic netns $host
	ip link set "port$k" up master switch
	nsenter -n -t $host sh -c "ip link set nic up; ip addr add 10.77.0.$k/24 dev nic"
	hosts="$hosts${hosts:+,}10.77.0.$k:$each"
	shells="$shells *.$k $host"
done
# shellcheck disable=SC2086
host_shell $shells

# job OPTIONS ... -- COMMAND ...
job() {
	timeout -k 5 100 "$COLL" run --hosts "$hosts" --ssh "$dir/shell" -e COLL_DEADLINE=60s \
		"$@" >"$dir/out" 2>&1 || { sed 's/^/# /' "$dir/out"; return 1; }
}
