#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld manages circuits: jobs share ports, restarts, refusals name the reason, pictures.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/colld.sh"
work=$(mktemp -d) || exit 1
colld= switch=
finish() {
	[ -z "$colld" ] || kill "$colld" 2>/dev/null
	exec 5>&-
	[ -z "$switch" ] || kill "$switch" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
socket=$work/socket

circuit() {
	"$COLL" circuit "$@" --socket "$socket"
}
stop_colld() {	# SIGNAL
	kill -"$1" "$colld" 2>/dev/null
	wait "$colld" 2>/dev/null
	colld=
}
said() {	# jq's expression over `coll circuit show --json`
	circuit show --json | jq -r "$1"
}
until_said() {	# EXPRESSION WANTED
	for _ in $(seq 1 200); do
		[ "$(said "$1" 2>/dev/null)" = "$2" ] && return
		sleep 0.1
	done
	circuit show
	return 1
}
refused() {	# PATTERN COMMAND...
	pattern=$1
	shift
	why=$("$@" 2>&1) && return 1
	printf '%s\n' "$why" | grep -Eq "$pattern" || { echo "# $why"; return 1; }
}

# ---- the file ------------------------------------------------------------------------

check() {	# LINE...: what colld says of a file with these lines
	printf '%s\n' "$@" >"$work/circuits"
	"$BUILD/colld" --circuits "$work/circuits" --check
}
ok "--check accepts a correct file" silent check "switch fake" "node a 1,2" "node b 3"
ok "a file without a switch is refused" refused "no switch" check "node a 1" "node b 2"
ok "an unknown switch is refused, with the valid ones" refused "circuits:1: switch: 'pigeon'; valid: .*scpi" \
	check "switch pigeon" "node a 1" "node b 2"
ok "a port of two nodes is refused" refused "circuits:3: node: port 1: .* each is one node's" \
	check "switch fake" "node a 1" "node b 1"
ok "an unknown word is refused, with the valid ones" refused "no 'speed'; valid: socket PATH" check "speed 3"
ok "a single node is refused" refused "1 nodes; valid: 2 and more" check "switch fake" "node a 1"
for line in "timeout 0s" "timeout 500us" "reconcile 0ms" "timeout"; do
	ok "refused: $line" refused ':1: .*: a time such as 20ms, at least 1ms' check "$line" "switch fake"
done
ok "a missing file is an error" refused "No such file" "$BUILD/colld" --circuits "$work/nothing" --check
ok "coll circuit show says that colld does not run" refused "is colld --circuits running" circuit show

# ---- a colld that stands still, and whose queue of connections is full ------------------

perl -MIO::Socket::UNIX -e 'my @held = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die;
	push @held, IO::Socket::UNIX->new(Peer => $ARGV[0]) for 1, 2;
	$| = 1; print "full\n"; sleep 60' "$work/full" >"$work/filled" &
switch=$!
ok "a queue is full" soon 10 test -s "$work/filled"
ok "coll circuit does not wait for it forever" refused "full: Connection timed out" \
	timeout 30 "$COLL" circuit show --socket "$work/full"
ok "... nor does a rank" refused "full: Connection timed out" \
	timeout 30 env COLL_CIRCUITS="$work/full" "$COLL" run -n 1 -- "$COLL" bench barrier --iterations 1
kill $switch
wait $switch 2>/dev/null
switch=

# ---- a switch over SCPI, four nodes of one port each -----------------------------------

mkfifo "$work/stdin"
"$BUILD/tests/circuit/fake_switch" <"$work/stdin" >"$work/ports" &
switch=$!
exec 5>"$work/stdin"
soon 10 test -s "$work/ports"
read -r scpi http <"$work/ports"
cat >"$work/circuits" <<END
socket $socket
switch scpi 127.0.0.1:$scpi    # blanks, and a comment
node n0 1
node n1 2
node n2 3
node n3 4
keep 100ms
reconcile 200ms
END
ok "colld connects to the switch by SCPI" start_colld

share() {
	"$BUILD/tests/circuit/competing_jobs" "$socket" 4 2 12 5 >"$work/jobs" || { cat "$work/jobs"; return 1; }
}
ok "two jobs share the ports, and both complete" share
read -r all fewest <"$work/jobs"
ok "when one is done the other has done at least half: $fewest of $all" \
	test "$fewest" -ge $((all / 2))

request() {
	silent circuit request n0 n1 --wait 60s && silent circuit request n2 n3 --wait 60s
}
ok "circuits can be requested" request
is "... and come up" "$(said '[.circuits[] | select(.state == "up")] | length')" 2
ok "a reconfiguration delay is measured, the sum of its parts" test "$(said '.switch |
	.delay_ns > 0 and .switch_ns > 0 and .delay_ns >= .switch_ns and
	.delay_p90_ns >= .delay_ns')" = true
ok "a request without a free port fails" refused "not up after 0.2 s; state: down" \
	circuit request n0 n2 --wait 200ms
ok "a circuit is released" silent circuit release n0 n2
ok "a second release is refused" refused "has not requested this circuit" circuit release n0 n2
ok "an unknown node is refused" refused "two different nodes" circuit request n0 n9
ok "too many ports are refused" refused "ports: from 0 to 1" circuit ports n0 5
ok "a wrong number of arguments is refused" refused "1 arguments; valid: NODE PEER" circuit request n0
ok "an unknown command is refused" refused "valid: show, watch, request" circuit dance
ok "coll circuit draws a picture" silent circuit show --svg "$work/map.svg"
ok "... as SVG" grep -q "<svg" "$work/map.svg"

# ---- a restart: the switch has them, and they stay ----------------------------------------

before=$(said .switch.setups)
stop_colld KILL
ok "colld is killed and restarted" start_colld
ok "... it adopts the circuits of the switch" grep -q "took over 2 circuits" "$work/colld.log"
is "... they are up" "$(said '[.circuits[] | select(.state == "up")] | length')" 2
is "... without a new set-up" "$(said .switch.setups)" 0
ok "... while there were set-ups before" test "$before" -ge 2

"$BUILD/tests/circuit/competing_jobs" "$socket" 4 2 12 5 >"$work/jobs" &
jobs=$!
sleep 1
stop_colld KILL
ok "colld is killed in the middle of two jobs" start_colld
ended() {
	wait "$jobs" || { cat "$work/jobs"; return 1; }
}
ok "... both jobs complete" ended

# ---- ports that are lost and come back ------------------------------------------------------------------

silent circuit request n0 n1 --wait 60s
ok "a node loses its port" silent circuit ports n0 0
ok "... its circuit goes down" until_said '.circuits[] | select(.node == "n0" and .peer == "n1") | .state' down
ok "a node gets its port back" silent circuit ports n0 1
ok "... the circuit comes up again" until_said '.circuits[] | select(.node == "n0" and .peer == "n1") | .state' up
ok "a drained circuit comes up again" silent circuit drain n0
ok "... it is up" until_said '.circuits[] | select(.node == "n0" and .peer == "n1") | .state' up
circuit watch --json --for 3s >"$work/watched" &
watcher=$!
sleep 0.5
circuit drain n0
wait "$watcher"
ok "coll circuit watch reports both changes" sh -c \
	'jq -r .state "$0" | tr "\n" " " | grep -q "draining.*up"' "$work/watched"
stop_colld TERM

# ---- colld ends while the switch does not answer ---------------------------------------------------

. "$(dirname "$0")/../lib/cpus.sh"
cpus_of_task() {
	taskset -pc "$task" | sed 's/.*: //'
}
task_is_at() {	# CPUS
	[ "$(cpus_of_task)" = "$1" ]
}
if [ "$first" = "$last" ]; then
	skip "the policy is undone at once" "one CPU: a policy has nothing to divide"
else
	cp "$(command -v sleep)" "$work/cct$$"
	"$work/cct$$" 60 &
	task=$!
	printf 'housekeeping %s\napplication %s\npin comm=cct%s\n' "$first" "$last" $$ >"$work/policy"
	(cat "$work/circuits" && echo "timeout 8s") >"$work/slow"
	"$BUILD/colld" --circuits "$work/slow" --policy "$work/policy" --metrics 0 --state "$work/state" \
		2>>"$work/colld.log" 5>&- &
	colld=$!
	ok "a colld with a policy and a switch pins a task" soon 10 task_is_at "$first"
	ok "... and serves circuits" soon 10 test -S "$socket"
	kill -STOP "$switch"
	sleep 0.5	# it reconciles each 0.2 s: it waits for the switch by now
	kill "$colld"
	ok "... told to end, it moves the task back at once" soon 3 task_is_at "$allowed"
	ok "... though it waits for the switch still" kill -0 "$colld"
	kill -CONT "$switch"
	wait "$colld"
	is "... and ends" $? 0
	colld=
	kill "$task"
fi

# ---- the same by RESTCONF -------------------------------------------------------------------------

sed -i "s|^switch.*|switch  restconf   http://admin:root@127.0.0.1:$http   ports=16   # too|" "$work/circuits"
ok "colld connects to the switch by RESTCONF" start_colld
ok "... two jobs share it" share
stop_colld TERM
sed -i "s|^switch.*|switch restconf http://admin:wrong@127.0.0.1:$http ports=16|" "$work/circuits"
ok "a wrong password is an error in words, without it" refused "switch restconf: HTTP 401" \
	"$BUILD/colld" --circuits "$work/circuits" --metrics 0 --state "$work/state"

perl -MIO::Socket::INET -e '
	my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or exit 1;
	open my $f, ">", $ARGV[0]; print $f $l->sockport; close $f;
	$SIG{PIPE} = "IGNORE";
	while (my $s = $l->accept) {
		print $s "HTTP/1.0 200 OK\r\n\r\n";
		for (1 .. 40) { print $s " " x (1 << 20) or last }
	}' "$work/endless" &
endless=$!
soon 20 test -s "$work/endless"
sed -i "s|^switch.*|switch restconf http://127.0.0.1:$(cat "$work/endless") ports=16|; \$a timeout 20s" "$work/circuits"
ok "what sends without end is no switch" refused "its answer is longer than 1 MB" \
	"$BUILD/colld" --circuits "$work/circuits" --metrics 0 --state "$work/state"
kill "$endless"
tap_end
