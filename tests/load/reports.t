#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What it takes colld to tell of a job with many ranks on its node, and that colld's other work goes on
# meanwhile. COLL_TEST_LONG=1: 1024 ranks, the most that a report has, and some more.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/live_job.sh"
if [ -e /etc/coll/policy ]; then
	echo "1..0 # SKIP this node has a policy, which colld would put in force"
	exit 0
fi
if [ -n "$COLL_TEST_LONG" ]; then
	ranks=1030 most=1024 times=20
else
	ranks=64 most=64 times=5
fi
port=$((20000 + $$ % 10000))
owner=$(id -u) as=
if [ "$owner" = 0 ]; then
	owner=$((64000 + $$ % 500))
	as="setpriv --reuid=$owner --regid=$owner --clear-groups"
fi
chmod 755 "$work"

live A=A timeout -k 1 60 "$COLL" run -q -n 4 --bind none --no-prefix -- "$BUILD/tests/multi/late_rank" 0 3 5
sleep 3
"$COLL" show --dump "$work" "$job" >/dev/null
finish
chmod 644 "$work"/*.flight
mkfifo "$work/hold"
$as "$BUILD/tests/load/pages" $ranks "$work/coll-$job-0.flight" <"$work/hold" >"$work/ready" 2>&1 &
jobs="$jobs $!"
exec 9>"$work/hold"
"$BUILD/colld" --state "$work/state" --metrics $port --reports anybody 2>"$work/log" &
daemon=$!
jobs="$jobs $daemon"
ok "$ranks ranks are there" quiet soon 60 grep -q ready "$work/ready"

# ask TARGET TIMES PAUSE: bytes of the answer, then median and longest time in ms.
cat >"$work/ask" <<'END'
use IO::Socket::INET; use Time::HiRes qw(time sleep);
my ($port, $target, $times, $pause) = @ARGV;
my (@took, $bytes);
for (1 .. $times) {
	my $from = time;
	my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or exit 1;
	print $s "GET $target HTTP/1.0\r\n\r\n"; $s->flush;
	my $answer = do { local $/; <$s> };
	push @took, 1000 * (time - $from);
	$answer =~ m{^HTTP/1.. 200} or exit 2;
	$bytes = length $answer;
	sleep $pause;
}
@took = sort { $a <=> $b } @took;
printf "%d %.1f %.1f\n", $bytes, $took[@took / 2], $took[-1];
END
ask() {
	perl "$work/ask" $port "$@"
}
quiet soon 10 ask /metrics 1 0
cpu() {		# ms of the children, and of colld; how many answers were made
	perl -e 'use IO::Socket::INET;
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]");
		print $s "GET /metrics HTTP/1.0\r\n\r\n";
		my @line = <$s>;
		my ($children) = map { /^coll_reports_cpu_seconds_total (\S+)/ ? 1000 * $1 : () } @line;
		my ($made) = map { /"made"\} (\d+)/ ? $1 : () } @line;
		open(my $stat, "<", "/proc/$ARGV[1]/stat");
		my @field = split " ", <$stat>;
		printf "%d %d %d\n", $children, 10 * ($field[13] + $field[14]), $made' $port $daemon
}
is_whole() {
	[ "$(perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]");
		print $s "GET /report.json?job=pages HTTP/1.0\r\n\r\n"; print while <$s>' $port |
		sed '1,/^\r*$/d' | jq "if .cut == ($ranks > $most) then .here else 0 end")" = $most ]
}
ok "the report has $most of them, and says whether it is cut" quiet soon 20 is_whole
for target in /jobs.json "/report.json?job=pages&user=$owner" '/report?job=pages'; do
	before=$(cpu)
	ask "$target" $times 1.2 >"$work/out"
	result $? "$target is answered each time"
	after=$(cpu)
	echo "# $target: bytes, median and longest ms: $(cat "$work/out");" "$(echo "$before $after" | awk -v n=$times '{
		made = $6 - $3
		printf("of %d answers %d were made, CPU ms each: %.0f; of colld, of each answer: %.1f", n, made,
			(made ? ($4 - $1) / made : 0), ($5 - $2) / n) }')"
	read -r bytes median longest <"$work/out"
	ok "... in less than the deadline" awk "BEGIN { exit !(${longest:-99999} < 30000) }"
done

# Meanwhile other requests are served: nothing that takes long is in colld's own process.
(
	for number in $(seq 100); do	# each is another question
		ask "/jobs.json?user=$number" 1 0 >/dev/null
		ask "/report.flight?job=pages&user=$owner" 1 0 >/dev/null
	done
) &
asker=$!
ask /metrics 200 0.005 >"$work/out"
result $? "metrics are served while reports are made"
echo "# /metrics meanwhile: bytes, median and longest ms: $(cat "$work/out")"
read -r bytes median longest <"$work/out"
ok "... half of them within $(limit 20 200) ms" awk "BEGIN { exit !($median < $(limit 20 200)) }"
kill $asker 2>/dev/null

# Who asks all the time has a share of the time, and nobody else has less of it.
cat >"$work/socket" <<'END'
use IO::Socket::UNIX;
my ($path, $target, $times, $status) = @ARGV;
for (1 .. $times) {
	my $s = IO::Socket::UNIX->new(Peer => $path) or exit 1;
	select undef, undef, undef, 0.01;	# refused, it is still let ask
	print $s "GET $target HTTP/1.0\r\n\r\n"; $s->flush;
	my $answer = do { local $/; <$s> };
	print "$_: $answer" if $answer !~ m{^HTTP/1.. 200};
	exit 0 if $answer =~ m{^HTTP/1.. $status};
	$answer =~ m{^HTTP/1.. 200} or exit 2;
}
exit 3;
END
if [ -n "$as" ]; then
	at_last() {
		timeout 300 $as perl "$work/socket" "$work/state/reports" "/report.json?job=pages" 400 429 >"$work/out"
	}
	ok "over the socket a user who asks all the time is refused at last" at_last
	sed 's/^/# /' "$work/out"
	ok "... and is told when to ask" grep -q 'your share of the time, or .*; ask in [0-9]* s' "$work/out"
	ok "another user is answered" quiet setpriv --reuid=$((owner + 1)) --regid=$((owner + 1)) --clear-groups \
		perl "$work/socket" "$work/state/reports" /jobs.json 1 200
	ok "... and root" quiet perl "$work/socket" "$work/state/reports" "/report.json?job=pages" 1 200
else
	skip "shares of users" "not root"
fi
exec 9>&-
kill $daemon
wait $daemon
is "colld ends as it should" $? 0
tap_end
