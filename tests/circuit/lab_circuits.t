#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll lab with an optical switch: sets namespaces, colld and its emul driver up, and removes them.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

said() {
	printf '%s\n' "$said" | grep -q "$1"
}
lab() {
	timeout 100 "$COLL" lab "$@"
}
like "circuits with several clusters are refused" "$(lab -c 2+2 --circuits 1 -- true 2>&1)" "takes one cluster"
like "a wrong number of ports is refused" "$(lab -c 4 --circuits none -- true 2>&1)" "circuits 'none'"
if [ "$(id -u)" != 0 ] || ! quiet unshare -n true; then
	skip "a lab with circuits" "not root here"
	tap_end
	exit
fi
said=$(COLL_EXPLAIN=1 lab -c 4 --circuits 2 --set-up 5ms -- "$COLL" bench allreduce --size 8 \
	--iterations 2 2>&1)
code=$?
if said "no filter: Operation not permitted"; then
	skip "a lab with circuits" "no BPF filters here"
	tap_end
	exit
fi
is "colld manages four nodes of two ports" $code 0
like "... a call is planned for them" "$said" "coll: allreduce of .*ports=2.* reconfigurations of"
# A byte takes 80 ns at 100 Mbit/s, which nobody has told; 0.8 ns is assumed until then.
said=$(lab -c 3 --circuits 2 --set-up 5ms --nic 100M -- "$BUILD/tests/circuit/circuit_calls" bytes 2>&1)
is "long messages go over circuits" $? 0
byte_ns() {	# WHEN
	printf '%s\n' "$said" | sed -n "s/.*bytes $1: .*beta \([0-9.e+]*\) ns.*/\1/p" | tail -1
}
is "... planned for 10 Gbit/s" "$(byte_ns before)" 0.8
ok "until TCP has seen some: then a byte takes $(byte_ns after) ns, not less than the ports allow" \
	awk -v ns="$(byte_ns after)" 'BEGIN { exit !(ns >= 30) }'
cat >"$work/program" <<'END'
"$1" circuit show --json --socket "$COLL_CIRCUITS" >"$2/shown.$COLL_RANK"
echo "$COLL_CIRCUITS" >"$2/socket"
END
lab -c 3 --circuits 2 -- sh "$work/program" "$COLL" "$work"
is "a lab has three nodes" $? 0
is "... each sees the switch's nodes" "$(jq -r '.nodes | length' "$work"/shown.* | tr '\n' ' ')" "3 3 3 "
ok "... nothing is left of it" test ! -e "$(dirname "$(cat "$work/socket")")"

# Its directory is old and unlocked; one of a lab that runs is locked, however old.
killed() {
	rm -f "$work/socket"
	"$COLL" lab -c 2 --circuits 1 -- sh -c 'echo "$COLL_CIRCUITS" >"$0/socket"; exec sleep 60' "$work" &
	lab=$!
	soon 20 test -s "$work/socket" || return 1
	left=$(dirname "$(cat "$work/socket")")
	touch -d '2 minutes ago' "$left"
	lab -c 2 --circuits 1 -- true && [ -e "$left/circuits" ] || return 1
	kill -KILL $lab
	wait $lab 2>/dev/null
	[ -e "$left/circuits" ] && soon 20 flock -n "$left/circuits" true || return 1
	touch -d '2 minutes ago' "$left"
	lab -c 2 --circuits 1 -- true && [ ! -e "$left" ]
}
ok "what a killed lab leaves, the next one removes" quiet killed
tap_end
