#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Ranks, colld and a switch: every collective with planned circuits, checked by the switch's
# own log.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/colld.sh"
work=$(mktemp -d) || exit 1
colld= switch=
stop() {
	[ -z "$colld" ] || { kill "$colld" && wait "$colld"; } 2>/dev/null
	exec 5>&-
	[ -z "$switch" ] || wait "$switch" 2>/dev/null
	colld= switch=
}
finish() {
	stop
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
export COLL_CIRCUITS="$work/socket" COLL_DEADLINE=60s
unset COLL_EXPLAIN COLL_CIRCUIT_PORTS
mkfifo "$work/stdin"

# A switch of exactly the nodes' ports: n0 has ports 1 to K, n1 the next, ...
start() {	# NODES K LINE...: lines of colld's file
	nodes=$1 k=$2
	shift 2
	rm -f "$work/ports"
	"$BUILD/tests/circuit/fake_switch" $((nodes * k)) "$work/log" <"$work/stdin" \
		>"$work/ports" 5>&- &
	switch=$!
	exec 5>"$work/stdin"
	soon 10 test -s "$work/ports"
	read -r FAKE_SCPI _ <"$work/ports"
	export FAKE_SCPI
	{
		printf 'socket %s\nswitch scpi 127.0.0.1:%s\n' "$work/socket" "$FAKE_SCPI"
		seq 0 $((nodes - 1)) | awk -v k="$k" '{
			for (i = 1; i <= k; i++)
				list = list (i > 1 ? "," : "") $1 * k + i
			print "node n" $1, list
			list = "" }'
		printf '%s\n' "$@"
	} >"$work/circuits"
	: >"$work/colld.log"
	start_colld
}
ranks() {	# PROGRAM ARGUMENT...: a rank on each node
	"$COLL" run --no-prefix -q -t 150 -n "$nodes" -- sh -c 'COLL_NODE=n$COLL_RANK exec "$@"' - "$@"
}
right() {	# the same, silent if it ends well
	quiet ranks "$@"
}

# No node had more circuits than ports, and nothing was asked of a port in use. Says how
# many paths there were; a circuit is two.
legal() {
	awk -v k="$k" '
	$1 == "no" { print "refused:", $0; bad = 1 }
	$1 == "up" { leads[$2] = $3; if (++count[node($2)] > k) bad = 1; paths++
		if (count[node($2)] > most) most = count[node($2)] }
	$1 == "down" { count[node($2)]--; delete leads[$2] }
	function node(port) { return int((port - 1) / k) }
	END { if (bad || !paths || most > k) { print "paths", paths, "most", most; exit 1 } }
	' "$work/log"
}
setups() {	# FROM TO: marks in the log
	awk -v from="$1" -v to="$2" '
	$1 == "mark" { here = $2 >= from && $2 < to }
	$1 == "up" && here { n++ }
	END { print n / 2 + 0 }' "$work/log"
}

for k in 1 2 3; do
	ok "five nodes, ports: $k" start 5 "$k" "keep $((k * 20 - 20))ms"
	ok "every collective is right with the ports that colld reports" \
		right "$BUILD/tests/multi/every_collective" 40 "$k" 1000
	ok "... with never more circuits than ports" legal
	stop
done

start 4 2 "keep 0s" "limit 2"
ok "every collective is right with two wavelengths" right "$BUILD/tests/multi/every_collective" 160 7 1000
ok "... which are never exceeded" awk '
	$1 == "up" { if (++paths > 4) bad = 1; n++ }
	$1 == "down" { paths-- }
	END { exit bad || !n }' "$work/log"
stop

start 4 2 "keep 100s"
said=$(ranks "$BUILD/tests/circuit/circuit_calls" again)
ok "a call sets circuits up" test "$(setups 1 2)" -ge 3
is "... called again it reuses them" "$(setups 2 3)" 0
like "the choice is explained, with the prediction and the bound" "$said" \
	"first: allreduce .*ports=2.*predicted [0-9.]+ ms, at least [0-9.]+ ms: [0-9]+ reconfigurations of"
stop

# Even where nothing is kept, what a persistent call needs is there before it starts.
export COLL_ALLREDUCE=ring
start 4 2 "keep 0s"
ok "a persistent call sets circuits up" right "$BUILD/tests/circuit/circuit_calls" persistent
ok "... before it starts" test "$(grep -c up "$work/log")" -ge 8
is "... and none after" "$(setups 1 2)" 0
stop
unset COLL_ALLREDUCE

start 4 3 "keep 0s"
said=$(COLL_ALLREDUCE=butterfly COLL_ALPHA=1us COLL_BETA=0.1ns \
	ranks "$BUILD/tests/circuit/circuit_calls" ports)
like "a butterfly is planned for three ports" "$said" "call before: .*ports=3"
times_delta() {	# CALL: the predicted time, in set-up times
	printf '%s\n' "$said" | sed -n "s/^$1: .*predicted \([0-9.e+]*\) ms.*reconfigurations of \([0-9.e+]*\) ms.*/\1 \2/p" |
		awk '{ printf "%.0f\n", $1 / $2 }'
}
is "both of a butterfly's steps are set up at once" "$(times_delta "call before")" 1
is "after a node has lost ports, the next call is planned for one port" "$(times_delta "call after")" 2
is "... and so is a persistent call" "$(times_delta "start after")" 2
is "after it has them again, the next call is planned for all" "$(times_delta "call again")" 1
is "... and so is a persistent call" "$(times_delta "start again")" 1
ok "... no node has more circuits than ports" legal
stop

# In mid-collective: who loses its port waits its turn for another. Nothing is planned anew.
start 4 2 "keep 0s" "lease 20ms" "grace 2ms"
come_and_go() {
	while :; do
		for ports in 1 2; do
			"$COLL" circuit ports n1 $ports --socket "$work/socket" >/dev/null 2>&1
			sleep 0.05
		done
	done
}
come_and_go 5>&- &
changer=$!
ok "results are right while a node's port is lost and restored" \
	right "$BUILD/tests/multi/every_collective" 20 5 1000
kill "$changer"
wait "$changer" 2>/dev/null
ok "... circuits were taken away" test "$("$COLL" circuit show --json --socket "$work/socket" |
	jq .switch.revoked)" -ge 1
ok "... no node has more circuits than ports" legal
stop

start 3 2 "keep 0s" "retry 1ms"
export COLL_EXPLAIN=1
said=$(ranks "$BUILD/tests/circuit/circuit_calls" stuck 3 2>&1)
ok "after a port has failed the other one is used" test "$(setups 1 2)" -ge 2
like "... the call completes" "$said" "^stuck: allreduce"
stop
start 3 1 "keep 0s" "retry 1ms" "retries 1"
said=$(ranks "$BUILD/tests/circuit/circuit_calls" stuck 2 2>&1)
like "without another port the data takes the packet network" "$said" \
	"no circuit .* takes the packet network"
like "... the call completes" "$said" "^stuck: allreduce"
ok "... no node has more circuits than ports" grep -q "^mark 2" "$work/log"
stop
tap_end
