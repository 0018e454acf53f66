#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A switch made of namespaces and tc: a circuit that is up carries frames; one that is down
# loses them and has no carrier.
if [ -z "$EMUL_INSIDE" ]; then
	unshare -mn true 2>/dev/null && [ "$(id -u)" = 0 ] || {
		echo "1..0 # SKIP no network namespaces of our own here"
		exit 0
	}
	# All that is made is gone with these namespaces.
	EMUL_INSIDE=yes exec unshare -mn --propagation private "$0" "$@"
fi
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/colld.sh"
mount -t tmpfs none /run || exit 1
mkdir -p /run/netns
work=$(mktemp -d) || exit 1
colld=
finish() {
	[ -z "$colld" ] || kill "$colld" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
socket=$work/socket

# Three nodes: n0 has two ports, the others one.
make_node() {	# NUMBER SWITCH-PORT...
	node=$1
	shift
	ip netns add "n$node"
	ip -n "n$node" link set lo up
	ip -n "n$node" addr add "10.78.0.$((node + 1))/32" dev lo
	number=0
	for port; do
		ip link add "sw$port" type veth peer name "port$number" netns "n$node"
		# One address for all, and no ARP: whoever a port leads to takes the frame.
		ip -n "n$node" link set "port$number" arp off address 02:00:00:00:00:01 up
		number=$((number + 1))
	done
}
network() {
	ip link set lo up && make_node 0 1 2 && make_node 1 3 && make_node 2 4
}
if ! quiet network; then
	echo "1..0 # SKIP no veth here"
	exit 0
fi
cat >"$work/circuits" <<END
socket $socket
switch emul delta=20ms seed=3 netns=/run/netns/%s address=10.78.0.%u
node n0 1,2
node n1 3
node n2 4
keep 0s
END
no_address() {	# ADDRESS
	sed "s|address=.*|address=$1|" "$work/circuits" >"$work/wrong"
	timeout 20 "$BUILD/colld" --circuits "$work/wrong" --metrics 0 --state "$work" >"$work/why" 2>&1
	[ $? = 1 ] && grep -q "node n0: '$1' gives it no address" "$work/why" && return
	sed 's/^/# /' "$work/why"
	return 1
}
ok "an address that is none is refused" silent no_address node%u
ok "... and one above 255" silent no_address 10.78.0.30%u

circuit() {
	"$COLL" circuit "$@" --socket "$socket"
}
reaches() {	# FROM TO
	address=10.78.0.$(($2 + 1))
	ip netns exec "n$2" perl -MIO::Socket::INET -e '
		alarm 2;
		$s = IO::Socket::INET->new(Proto => "udp", LocalAddr => shift, LocalPort => 4000);
		$s->recv($said, 9);
		exit($said ne "light")' "$address" 2>/dev/null &
	listener=$!
	ip netns exec "n$1" perl -MIO::Socket::INET -e '
		for (1 .. 12) {
			$s = IO::Socket::INET->new(Proto => "udp", PeerAddr => $ARGV[0], PeerPort => 4000);
			$s->send("light") if $s;
			select(undef, undef, undef, 0.15);
		}' "$address"
	wait "$listener" 2>/dev/null
}
does_not() {
	! "$@" >/dev/null 2>&1
}
carrier() {	# NODE PORT
	ip -n "n$1" -o link show "port$2" | grep -q LOWER_UP
}
routed() {	# FROM TO
	ip -n "n$1" route show "10.78.0.$(($2 + 1))" | grep -q "mtu 1500"
}

if ! start_colld >"$work/said" && grep -q "no filter: Operation not permitted" "$work/said"; then
	echo "1..0 # SKIP no BPF filters here"
	exit 0
fi
ok "colld emulates a switch between namespaces" test -S "$socket"
ok "without a circuit a node has no carrier" does_not carrier 0 0
ok "... and reaches no node" does_not reaches 0 1
ok "... and has no route" does_not routed 0 1
ok "a circuit is requested" silent circuit request n0 n1 --wait 60s
ok "... its first end has a carrier" carrier 0 0
ok "... its second end too" carrier 1 0
ok "... and a route with its MTU" routed 0 1
ok "... it carries data" reaches 0 1
ok "... in both directions" reaches 1 0
ok "... to this node only" does_not reaches 0 2
ok "a second circuit uses the second port" silent circuit request n0 n2 --wait 60s
ok "... it carries data" reaches 0 2
ok "... beside the first" reaches 0 1
ok "a reconfiguration takes the configured delay, at least half of 20 ms" test "$(circuit show --json |
	jq '.switch.switch_ns >= 10000000 and .switch.delay_ns >= .switch.switch_ns')" = true

kill -KILL "$colld"
wait "$colld" 2>/dev/null
ok "when colld is killed, circuits carry on" reaches 1 0
ok "colld is restarted" start_colld
is "... it has adopted both circuits" "$(circuit show --json |
	jq '[.circuits[] | select(.state == "up")] | length')" 2
ok "... they carry data" reaches 0 2
ok "a circuit is requested again" silent circuit request n0 n1 --wait 60s
ok "... its node loses the port" silent circuit ports n0 0
ok "... there is no carrier" soon 10 does_not carrier 1 0
ok "... the route is gone" does_not routed 0 1
ok "... no data arrives" does_not reaches 0 1
tap_end
