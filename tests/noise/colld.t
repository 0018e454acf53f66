#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld keeps a policy in force, takes over from one that died, and puts everything back.
. "$(dirname "$0")/../lib/tap.sh"
colld=$BUILD/colld
work=$(mktemp -d)
pids=
group=
cleanup() {
	kill $pids 2>/dev/null
	if [ -n "$group" ]; then
		for file in cgroup.freeze:0 freezer.state:THAWED; do
			[ -e "$group/${file%:*}" ] && echo "${file#*:}" >"$group/${file%:*}"
		done
		sleep 0.2
		rmdir "$group"
	fi
	rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT

if [ "$(nproc)" -lt 2 ]; then
	echo "1..0 # SKIP one CPU: there is nowhere to go"
	exit 0
fi
. "$(dirname "$0")/../lib/cpus.sh"
port=$((20000 + $$ % 10000))
name=cld$$

cpus_of() {	# PID
	taskset -pc "$1" 2>/dev/null | sed 's/.*: //'
}
becomes() {	# WANTED COMMAND...: within 20 seconds
	wanted=$1
	shift
	for _ in $(seq 1 100); do
		[ "$("$@")" = "$wanted" ] && return
		sleep 0.2
	done
	return 1
}
begin() {	# ARGUMENT...
	"$colld" --policy "$work/policy" --state "$work/state" --metrics $port --interval 200ms "$@" \
		2>>"$work/said" &
	daemon=$!
	pids="$pids $daemon"
}
get() {		# PATH
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 5) or exit 1;
		print $s "GET $ARGV[1] HTTP/1.0\r\n\r\n";
		print while <$s>' $port "$1"
}

cp "$(command -v sleep)" "$work/$name"
"$work/$name" 60 &
one=$!
pids="$pids $one"
policy="housekeeping $first
application $last
pin comm=$name"
echo "$policy" >"$work/policy"

# ---- the policy ------------------------------------------------------------------------------

ok "a policy is checked" "$colld" --check --policy "$work/policy"
printf 'pin comm=a\nwindow cgroup=/x period=1s\n' >"$work/wrong"
ok "a wrong one" sh -c "! '$colld' --check --policy '$work/wrong' 2>'$work/why'"
like "has its line named" "$(cat "$work/why")" 'wrong:2: a window needs cgroup=, period='
refuses() {	# POLICY REASON
	printf "$1\n" >"$work/wrong"
	ok "refused: $1" sh -c "! '$colld' --check --policy '$work/wrong' 2>'$work/why'"
	like "  it says why" "$(cat "$work/why")" "$2"
}
refuses 'pin irq=eth0-* to=1000' 'wrong:1: to: none of these CPUs is online'
refuses 'workqueues foo' "wrong:1: workqueues 'foo'; valid: no word after it"
refuses 'act act share=5%% share=6%%' 'wrong:1: a second share=; valid: one'
refuses 'act advise\nact act' 'wrong:2: a second act; valid: one line'
refuses 'pin comm=a\n\0pin comm=b' 'wrong: it has a zero byte'
ok "a folder is no policy" sh -c "! '$colld' --check --policy '$work' 2>'$work/why'"
like "  it says why" "$(cat "$work/why")" ': Is a directory'
ok "nor a file of circuits" sh -c "! '$colld' --check --circuits '$work' 2>'$work/why'"
like "  it says why" "$(cat "$work/why")" ': Is a directory'
"$colld" --status --state "$work/none" 2>"$work/why"
is "no state: no status" $? 1
like "  it says why" "$(cat "$work/why")" 'no colld runs: .*/none: No such file'
"$colld" --status --json --state "$work" >/dev/full 2>"$work/why"
is "a status that cannot be printed" $? 1
like "  it says why" "$(cat "$work/why")" 'cannot print it: No space left'
"$colld" --json 2>"$work/why"
is "--json without --status is exit code 2" $? 2
ok "none" sh -c "! '$colld' --check --policy '$work/none' 2>'$work/why'"
"$colld" --interval 1ns 2>"$work/why"
is "wrong options are exit code 2" $? 2
"$colld" --check --policy "$work/policy" --metrics localhost:1 2>"$work/why"
is "a name is no address of the metrics" $? 2

begin
ok "who is there is moved" becomes "$first" cpus_of $one
"$work/$name" 60 &
two=$!
pids="$pids $two"
ok "who comes later is too" becomes "$first" cpus_of $two
like "metrics" "$(get /metrics)" '^coll_pinned\{state="moved"\} 2'
like "are at /metrics only" "$(get /)" '404'
scans() {
	get /metrics | sed -n 's/^coll_pin_scans_total //p'
}
sleep 1.1
before=$(scans)
sleep 0.5
is "they are made once a second, however often they are asked for" "$(scans)" "$before"
taskset -pc "$last" $two >"$work/out"
changed() {
	get /metrics | sed -n 's/^coll_pinned{state="changed"} //p'
}
ok "what others change is counted" becomes 1 changed
is "and left alone" "$(cpus_of $two)" "$last"

# ---- it dies, and comes back --------------------------------------------------------------------

kill -9 $daemon
wait $daemon 2>/dev/null
is "when it dies, nothing changes" "$(cpus_of $one)" "$first"
begin
ok "another one takes over" becomes 1 sh -c "grep -c 'took over' '$work/said'"
echo "pin comm=\"" >"$work/policy"
echo "nonsense" >>"$work/policy"
kill -HUP $daemon
ok "a wrong policy is refused" becomes 1 sh -c "grep -c \"there is no 'nonsense'\" '$work/said'"
is "and the one before stays" "$(cpus_of $one)" "$first"
kill $daemon
wait $daemon
is "told to end, it does" $? 0
is "and puts everything back" "$(cpus_of $one)" "$allowed"
ok "and forgets it" test ! -e "$work/state/pin.state"

# ---- what cannot be read, saved or put in force -------------------------------------------------

taskset -pc "$allowed" $one >"$work/out"
echo "$policy" >"$work/policy"
echo "what an earlier one has moved, torn" >"$work/state/pin.state"
begin
wait $daemon
is "what an earlier one has moved cannot be read: colld does not begin" $? 1
is "... and the file is kept" "$(cat "$work/state/pin.state")" "what an earlier one has moved, torn"
is "... and nothing is moved" "$(cpus_of $one)" "$allowed"
rm "$work/state/pin.state"

refused() {
	get /metrics | sed -n 's/^coll_policy_reloads_total{result="refused"} //p'
}
echo "${policy%pin*}pin comm=none-$name" >"$work/policy"
mkdir "$work/state/pin.state.part"
begin
ok "a policy that has nothing to save" becomes 0 refused
echo "$policy" >"$work/policy"
kill -HUP $daemon
ok "one that cannot be saved is refused" becomes 1 refused
is "... and the former one is in force again, which is logged" \
	"$(grep -c 'the former policy is in force again' "$work/said")" 1
is "... so nothing is moved" "$(cpus_of $one)" "$allowed"
rmdir "$work/state/pin.state.part"
kill -HUP $daemon
ok "one that can be is in force" becomes "$first" cpus_of $one
mkdir "$work/state/pin.state.part"
kill -HUP $daemon
wait $daemon
is "where not even the former one can be put in force again, colld fails" $? 1
is "... and has put everything back" "$(cpus_of $one)" "$allowed"
rmdir "$work/state/pin.state.part"

# ---- another user has the port of the metrics ------------------------------------------------------

taskset -pc "$allowed" $one >"$work/out"
echo "$policy" >"$work/policy"
perl -MIO::Socket::INET -e '$> = 65534 if !$>;
	my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 1,
		ReuseAddr => 1) or exit 1;
	print "taken\n"; close STDOUT; sleep 60' $port >"$work/taken" &
squatter=$!
pids="$pids $squatter"
ok "another user takes the port of the metrics" becomes taken cat "$work/taken"
begin
ok "the policy is in force all the same" becomes "$first" cpus_of $one
is "the log says that there are no metrics, once" \
	"$(sleep 0.7; grep -c "metrics at 127.0.0.1:$port: Address already in use" "$work/said")" 1
kill $squatter
wait $squatter 2>/dev/null
ok "when the port is free, there are" becomes 1 \
	sh -c "grep -c 'metrics at 127.0.0.1:$port: served' '$work/said'"
like "... as ever" "$(get /metrics)" '^coll_pinned\{state="moved"\} [12]'
kill $daemon
wait $daemon

# ---- a colld that does not answer -----------------------------------------------------------------

perl -MSocket -e '$| = 1; my $at = pack_sockaddr_un($ARGV[0]); my @waiting;
	socket(my $s, AF_UNIX, SOCK_STREAM, 0); bind($s, $at); listen($s, 0);
	do { socket(my $c, AF_UNIX, SOCK_STREAM | 04000, 0); push @waiting, $c } while connect($waiting[-1], $at);
	print "full\n"; sleep 60' "$work/state/reports" >"$work/taken" &
stuck=$!
pids="$pids $stuck"
ok "a colld that accepts nobody, and as many wait as may" becomes full cat "$work/taken"
begin --reports owner
wait $daemon
is "another one does not begin, and does not wait for it" $? 1
like "... and says why" "$(tail -3 "$work/said")" 'socket .*/reports: Address already in use'
kill $stuck
wait $stuck 2>/dev/null
rm "$work/state/reports"

# ---- systemd --------------------------------------------------------------------------------------

echo "$policy" >"$work/policy"
perl -MSocket -e '$| = 1; socket(my $s, AF_UNIX, SOCK_DGRAM, 0); bind($s, pack_sockaddr_un($ARGV[0]));
	alarm 10; while (defined(recv($s, my $text, 100, 0))) { print "$text\n"; last if $text =~ /STOPPING/ }' \
	"$work/notify" >"$work/told" &
ear=$!
pids="$pids $ear"
becomes yes sh -c "test -e '$work/notify' && echo yes"
NOTIFY_SOCKET=$work/notify
export NOTIFY_SOCKET
begin
unset NOTIFY_SOCKET
ok "systemd is told that it is ready" becomes READY=1 head -1 "$work/told"
kill $daemon
wait $daemon
wait $ear
is "and that it ends" "$(tail -1 "$work/told")" "STOPPING=1"

# ---- windows ----------------------------------------------------------------------------------------

. "$(dirname "$0")/cgroup.sh"
if [ -n "$group" ]; then
	# A counter: how often it came round says how much of the time it could run.
	sh -c 'echo $$ >"$0/cgroup.procs"; while :; do date +%s.%N; sleep 0.01; done' "$group" >"$work/ran" &
	pids="$pids $!"
	echo "window cgroup=/$name period=500ms open=100ms phase=200ms" >>"$work/policy"
	begin
	ok "a cgroup is frozen" becomes 1 frozen
	sleep 3
	# Of what runs at any time, 64 % would come outside.
	ok "and thawed in its windows" awk '{ at = ($1 % 0.5) - 0.2; all++
		if (NR > 5 && (at < -0.02 || at > 0.16)) outside++ }
		END { print outside, "of", all, "outside"; exit !(all > 10 && outside < all * 0.4) }' "$work/ran"
	real_time() {	# 1: SCHED_FIFO
		cut -d ' ' -f 41 "/proc/$daemon/stat"
	}
	if [ "$(real_time)" = 1 ]; then
		perl -MIO::Socket::INET -e 'for (1 .. 400) {
			my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 5) or next;
			print $s "GET /metrics HTTP/1.0\r\n\r\n"; 1 while <$s> }' $port &
		pids="$pids $!"
		ok "it answers others without its real-time priority" perl -e 'my $end = time + 20;
			while (time < $end) {
				open my $f, "<", "/proc/$ARGV[0]/stat" or exit 1;
				exit 0 if (split / /, <$f>)[40] == 0
			} exit 1' $daemon
		ok "... which it sleeps with" becomes 1 real_time
	else
		skip "it answers others without its real-time priority" "no real-time priority here"
	fi
	like "which are counted" "$(get /metrics)" '^coll_window_turns_total [0-9]+'
	becomes 1 frozen
	kill -9 $daemon
	wait $daemon 2>/dev/null
	ok "when it dies, nothing stays frozen" becomes 0 frozen
	begin
	kill $daemon
	wait $daemon
	is "nor when it ends" "$(frozen)" 0
	ok "... and nothing is left written down" test ! -e "$work/state/frozen"
	printf '%s\nwindow cgroup=/%s period=1h open=1ms\n' "$policy" "$name" >"$work/policy"
	begin
	becomes 1 frozen
	kill -9 $(pgrep -P $daemon) $daemon
	wait $daemon 2>/dev/null
	is "it dies with its keepers: the cgroup stays frozen" "$(frozen)" 1
	echo "$policy" >"$work/policy"
	begin
	ok "... until colld is back, also without that window" becomes 0 frozen
	kill $daemon
	wait $daemon
else
	skip "windows" "not root, or no cgroup with a freezer can be made"
fi

# ---- interrupts of a driver that is unloaded and loaded again ---------------------------------------

# A /proc/irq of this test's own; a mask of one digit is written over another one.
interrupts=$work/irq both=$(printf %x $((1 << first | 1 << last))) away=$(printf %x $((1 << first)))
interrupt() {
	mkdir -p "$interrupts/77/eth0-rx"
	echo "$both" >"$interrupts/77/smp_affinity"
}
mask() {
	cat "$interrupts/77/smp_affinity"
}
if [ "$(id -u)" = 0 ] && [ "$last" -lt 4 ] && unshare -m true 2>/dev/null; then
	interrupt
	printf 'housekeeping %s\napplication %s\npin irq=eth0-*\n' "$first" "$last" >"$work/policy"
	unshare -m sh -c 'mount --bind "$1" /proc/irq && shift && exec "$@"' - "$interrupts" "$colld" --policy "$work/policy" \
		--state "$work/state" --metrics $port --interval 100ms 2>>"$work/said" &
	daemon=$!
	pids="$pids $daemon"
	ok "an interrupt is moved" becomes "$away" mask
	rm -r "$interrupts/77"
	sleep 1
	interrupt
	ok "one that comes again with its number is moved, too" becomes "$away" mask
	kill $daemon
	wait $daemon
	is "... and moved back at the end" "$(mask)" "$both"
else
	skip "interrupts that come again" "not root, or more CPUs than a mask of one digit has"
fi
tap_end
