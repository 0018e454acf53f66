#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Two hosts with an attacker between them, who passes all frames on and changes, repeats, swaps or
# cuts some: sealed ranks get right results or an error that names the connection, never a wrong
# result. The hosts are network namespaces, the attacker is a third one.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/hosts.sh"

COLL=$(realpath "$COLL")
ATTACKER=$(realpath "$BUILD/tests/multi/attacker_between")

# host NUMBER: a namespace with the address 10.99.0.NUMBER behind the interface m$NUMBER; sets $host.
host() {
	host_make
	ip link add "m$1" type veth peer name wire netns $host
	echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 2>/dev/null
	ip link set "m$1" up
	"$ATTACKER" plain "m$1"
	nsenter -n -t $host sh -c "$ATTACKER plain wire; ip link set wire up
		ip addr add 10.99.0.$1/24 dev wire"
}
host 1; a=$host
host 2; b=$host
host_shell '*.1' $a '*.2' $b

# attack LEVEL ENGINE HOW FIRST EVERY: what the two ranks say, in $said
attack() {
	"$ATTACKER" forward m1 m2 "$3" "$4" "$5" & attacker=$!
	host_ends $attacker
	said=$(nsenter -n -t $a timeout -k 5 60 "$COLL" run -k --hosts 10.99.0.1,10.99.0.2 --ssh "$dir/shell" \
		-e COLL_PROTECT=$1 -e COLL_ENGINE=$2 -- "$ATTACKER" rank 500 2>&1)
	kill $attacker
	wait $attacker 2>/dev/null
}
wrong() { printf '%s\n' "$said" | grep -c WRONG; }

for engine in uring epoll; do
	attack seal $engine pass 0 1
	is "an attacker who only listens harms nobody, $engine" "$(printf '%s\n' "$said" | grep -c unharmed)" 2
	for how in repeat swap; do
		attack seal $engine $how 30 5
		is "TCP mends a $how of frames, $engine" "$(printf '%s\n' "$said" | grep -c unharmed)" 2
	done
	for every in 3 50 1000; do
		attack seal $engine flip 300 $every
		is "a changed bit reaches no result, 1 of $every frames, $engine" "$(wrong)" 0
		like "... and is noticed" "$said" 'lost: .*not what it has sealed'
	done
	attack seal $engine flip 0 3
	is "... from the first frame on, the store's included, $engine" "$(wrong)" 0
	like "... nobody computes" "$said" 'lost: no job'
	attack seal $engine cut 500 1
	like "a connection that is cut is named, $engine" "$said" 'lost: .*rank [01]'
done
attack proof uring flip 300 50
ok "without a seal a changed bit is not noticed in time, or breaks the protocol" \
	sh -c 'printf "%s\n" "$1" | grep -qE "WRONG|lost"' sh "$said"
tap_end
