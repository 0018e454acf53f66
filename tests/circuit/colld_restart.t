#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld is killed in the middle of collectives and restarted: no circuit is set up again, no
# byte is lost. First with a fake switch and its log, then with an emulated switch, where the
# data takes the circuits.
if [ -z "$RESTART_INSIDE" ] && [ "$(id -u)" = 0 ] && unshare -mn true 2>/dev/null; then
	# All that is made is gone with these namespaces.
	RESTART_INSIDE=yes exec unshare -mn --propagation private "$0" "$@"
fi
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/colld.sh"
work=$(mktemp -d) || exit 1
colld= switch= ranks= half=
finish() {
	# shellcheck disable=SC2086
	kill $ranks $colld $half 2>/dev/null
	exec 5>&-
	[ -z "$switch" ] || wait "$switch" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
[ -z "$RESTART_INSIDE" ] || ip link set lo up
export COLL_CIRCUITS="$work/socket" COLL_DEADLINE=60s
unset COLL_EXPLAIN COLL_CIRCUIT_PORTS

kill_colld() {
	kill -KILL "$colld"
	wait "$colld" 2>/dev/null
}
circuits_up() {	# HOW-MANY
	[ "$("$COLL" circuit show --json --socket "$work/socket" |
		jq '[.circuits[] | select(.state == "up" and .requests > 0)] | length')" = "$1" ]
}
ended() {
	wait "$ranks" || { cat "$work/said"; ranks=; return 1; }
	ranks=
}
# Kills colld and starts it again while they run; `times` it was in the middle.
restarts() {	# AT-MOST
	times=0
	while [ "$times" -lt "$1" ] && kill -0 "$ranks" 2>/dev/null; do
		kill_colld
		kill -0 "$ranks" 2>/dev/null && times=$((times + 1))
		start_colld >>"$work/colld.log" || return
		sleep 0.2
	done
}

# ---- a fake switch, whose log is read ----------------------------------------------

mkfifo "$work/stdin"
"$BUILD/tests/circuit/fake_switch" 8 "$work/log" <"$work/stdin" >"$work/ports" 5>&- &
switch=$!
exec 5>"$work/stdin"
soon 10 test -s "$work/ports"
read -r scpi _ <"$work/ports"
cat >"$work/circuits" <<END
socket $work/socket
switch scpi 127.0.0.1:$scpi
node n0 1,2
node n1 3,4
node n2 5,6
node n3 7,8
keep 0s
END
job() {	# PROGRAM ARGUMENT...: a rank on each node
	"$COLL" run --no-prefix -q -t 150 -n 4 -- \
		sh -c 'COLL_NODE=n$COLL_RANK exec "$@"' - "$@" >"$work/said" 2>&1 5>&- &
	ranks=$!
}
setups() {
	awk '$1 == "up" { n++ } END { print n / 2 + 0 }' "$work/log"
}
have_set_up() {	# HOW-MANY
	[ "$(setups)" -ge "$1" ]
}
ok "colld connects to the switch" start_colld
export COLL_ALLREDUCE=ring
job "$BUILD/tests/circuit/circuit_calls" late "$work/come"
ok "a ring waits for one of its four ranks: two circuits are up" soon 20 circuits_up 2
kill_colld
ok "colld is killed and restarted" start_colld
ok "... it adopts both circuits" grep -q "took over 2 circuits" "$work/colld.log"
ok "... the ranks keep them" soon 20 circuits_up 2
: >"$work/come"
ok "the last rank joins, and the result is right" ended
is "each of the ring's circuits was set up once" "$(setups)" 4
unset COLL_ALLREDUCE

before=$(setups)
job "$BUILD/tests/multi/every_collective" 10 3 1000
ok "ranks are at work" soon 30 have_set_up $((before + 1))
restarts 8
ok "every collective is right while colld is killed" ended
ok "... killed $times times" test "$times" -ge 1
ok "... no port had two circuits" awk '
	$1 == "no" { print "# refused:", $0; bad = 1 }
	$1 == "up" { if (++count[int(($2 - 1) / 2)] > 2) bad = 1; n++ }
	$1 == "down" { count[int(($2 - 1) / 2)]-- }
	END { exit bad || !n }' "$work/log"
kill "$colld" && wait "$colld" 2>/dev/null
colld=

# The worst moment: one end is notified, completes its use and would exit; the other is not.
"$BUILD/tests/circuit/half_notified" "$work/socket" &
half=$!
soon 10 test -S "$work/socket"
"$COLL" run --no-prefix -q -t 100 -n 2 -- sh -c 'COLL_NODE=n$COLL_RANK exec "$@"' - \
	"$BUILD/tests/circuit/circuit_calls" one-way "$work/sent" >"$work/said" 2>&1 5>&- &
ranks=$!
ok "a manager dies after it has notified one end of two" wait "$half"
half=
ok "the notified end completes its use" soon 20 test -e "$work/sent"
ok "colld starts" start_colld
ok "... the other end completes too" ended
kill "$colld" && wait "$colld" 2>/dev/null
colld=

# ---- an emulated switch; the data takes its circuits ------------------------------------------

# Each node has two ports, and a packet network.
network() {
	mount -t tmpfs none /run && mkdir -p /run/netns || return
	ip link add packets type bridge && ip link set packets up || return
	for i in 0 1 2 3; do
		ip netns add "n$i" || return
		ip link add "p$i" type veth peer name packets netns "n$i" &&
			ip link set "p$i" master packets up || return
		ip -n "n$i" link set lo up
		ip -n "n$i" addr add "10.78.0.$((i + 1))/24" dev packets
		ip -n "n$i" link set packets up
		for k in 0 1; do
			ip link add "sw$((i * 2 + k + 1))" type veth peer name "port$k" netns "n$i" &&
				ip -n "n$i" link set "port$k" arp off address 02:00:00:00:00:01 up || return
		done
	done
}
if [ -z "$RESTART_INSIDE" ] || ! quiet network; then
	skip "on an emulated switch" "no network namespaces of our own here"
	tap_end
	exit
fi
sed -i 's|^switch.*|switch emul delta=3ms hold=1s netns=/run/netns/%s address=10.78.0.%u|' \
	"$work/circuits"
: >"$work/colld.log"
if ! start_colld >/dev/null && grep -q "no filter: Operation not permitted" "$work/colld.log"; then
	colld=
	skip "on an emulated switch" "no BPF filters here"
	tap_end
	exit
fi
carried() {	# bytes that went over circuits
	for i in 0 1 2 3; do
		ip netns exec "n$i" cat /sys/class/net/port0/statistics/tx_bytes \
			/sys/class/net/port1/statistics/tx_bytes
	done | awk '{ n += $1 } END { print n }'
}
secret=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
emul_job() {
	for i in 3 2 1 0; do
		COLL_NODE=n$i COLL_RANK=$i COLL_RANKS=4 COLL_JOB=restart COLL_STORE=10.78.0.1:7001 \
			COLL_SECRET=$secret COLL_ADDRESS=10.78.0.$((i + 1)) \
			ip netns exec "n$i" "$@" >"$work/said.$i" 2>&1 &
		one="$one $!"
	done
	for i in $one; do
		wait "$i" || { cat "$work"/said.*; return 1; }
	done
}
one=
(emul_job "$BUILD/tests/multi/every_collective" 10 5 20000) >"$work/said" 2>&1 &
ranks=$!
have_carried() {	# BYTES
	[ "$(carried)" -ge "$1" ]
}
ok "on an emulated switch too" soon 30 have_carried 10000
restarts 8
ok "over an emulated switch every collective is right" ended
ok "... with colld killed $times times" test "$times" -ge 1
ok "... the bytes went over circuits: $(carried)" have_carried 1000000
tap_end
