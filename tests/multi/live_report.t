#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# colld tells what the jobs of its node lose while they run: by HTTP to whoever may reach it, over a socket to
# their owner and root. Names and pages that users make up are shown as text, and hold nobody up.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/live_job.sh"
trap 'exit 1' HUP INT TERM
if [ -e /etc/coll/policy ]; then
	echo "1..0 # SKIP this node has a policy, which colld would put in force"
	exit 0
fi
chmod 755 "$work"
state=$work/state
port=$((20000 + $$ % 10000))
user=$((64000 + $$ % 500))
daemon=

# begin OPTION ...: a colld of one's own.
begin() {
	"$BUILD/colld" --state "$state" --metrics $port "$@" 2>>"$work/log" &
	daemon=$!
	jobs="$jobs $daemon"
	quiet soon 10 answers 200 coll_policy_reloads_total get /metrics
}
end() {
	kill "$@" $daemon
	wait $daemon 2>/dev/null
}
# talk PATH|PORT: stdin is sent, and the answer printed, as far as it comes.
cat >"$work/talk" <<'END'
use IO::Socket::INET; use IO::Socket::UNIX;
my $to = shift;
my $s = $to =~ /^\d+$/ ? IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to", Timeout => 5)
		       : IO::Socket::UNIX->new(Peer => $to) or exit 1;
$SIG{PIPE} = 'IGNORE'; $SIG{ALRM} = sub { exit 3 }; alarm 25;
local $/;
my $said = <STDIN>;
print $s $said; $s->flush;
print while <$s>;
END
talk() {
	perl "$work/talk" "$@"
}
request() {	# TARGET
	printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$1" "${host:-localhost:$port}"
}
get() {		# TARGET: the whole answer of the door for HTTP
	request "$1" | talk $port
}
ask() {		# TARGET: ... of the socket, for root
	request "$1" | talk "$state/reports"
}
ask_as() {	# USER TARGET
	request "$2" | setpriv --reuid=$1 --regid=$1 --clear-groups perl "$work/talk" "$state/reports"
}
body() {
	sed '1,/^\r*$/d'
}
# answers STATUS PATTERN COMMAND ...: that status, and a line like it.
answers() {
	status=$1 pattern=$2
	shift 2
	"$@" >"$work/answer"
	head -1 "$work/answer" | grep -q "^HTTP/1.[01] $status" && grep -Eq -- "$pattern" "$work/answer"
}
told() {	# COMMAND TARGET FILTER: JSON, of which that holds
	"$1" "$2" | body >"$work/json" && [ -s "$work/json" ] && jq -e "$3" "$work/json"
}

# ---- what nobody is told -------------------------------------------------------------

printf 'switch fake\nnode here 1\nnode there 2\nsocket %s/circuits\n' "$work" >"$work/circuits"
begin --circuits "$work/circuits"
ok "without the option nothing is told" answers 404 'reports of jobs are not served here: colld --reports anybody' get /jobs
ok "... and there is no socket" test ! -e "$state/reports"
end
ok "a wrong value: exit code 2" exits 2 "$BUILD/colld" --reports all
ok "... and what is valid" found "^colld: --reports 'all'; valid: off, owner or anybody" err
ok "a wrong name: exit code 2" exits 2 "$BUILD/colld" --host-names http://n5
ok "... and what is valid" found "^colld: --host-names 'http://n5'; valid: names with commas between them" err
ok "anybody, and no address: exit code 2" exits 2 "$BUILD/colld" --reports anybody --metrics 0
ok "... and what is valid" found 'valid: --metrics with a port, or --reports owner' err

# ---- a job ---------------------------------------------------------------------------------

begin --reports anybody
ok "no job: an empty list" quiet told get /jobs.json '.jobs | type == "array"'
ok "a job that is not there" answers 404 "no job 'none' has ranks on .* now; /jobs lists those" get '/report?job=none'
live A=A timeout -k 1 120 "$COLL" run -q -n 4 --bind none --no-prefix -- \
	"$BUILD/tests/multi/late_rank" 0 3 20
mine=".jobs[] | select(.job == \"$job\")"
ok "a job is in the list" quiet soon 10 told get /jobs.json "$mine | .ranks == 4 and .here == 4 and (.part | not)"
link=$(jq -r "$mine.report" "$work/json")
late() {	# COMMAND
	told "$1" "$link" '.loss[0].kind == "late-rank" and .loss[0].rank == 3'
}
ok "its report names the rank that was planted late" quiet soon 20 late get
holds "... it is of all its ranks, and says whose it is" ".here == 4 and (.part | not) and .user == $(id -u)" "$work/json"
ok "the page has the rank in its first sentence" answers 200 '<h1>.*rank 3 is late' get "/report?job=$job"
ok "... is read again by itself" found '^Refresh: 5' answer
ok "... and runs no script" found "^Content-Security-Policy: default-src 'none'; style-src" answer
ok "... it has none" sh -c "! grep -qi '<script' '$work/answer'"
body <"$work/answer" >"$work/page.html"
ok "... and is well-formed" quiet python3 -c '
import sys, xml.dom.minidom
text = open(sys.argv[1]).read()
xml.dom.minidom.parseString(text[text.index("<html"):])' "$work/page.html"
ok "the list as a page links to it" answers 200 "<a href=\"/report[?]job=$job&#38;user=$(id -u)\">$job</a>" get /jobs
ok "over the socket its owner has it" quiet soon 10 late ask
records() {
	get "/report.flight?job=$job" | body >"$work/here.flight"
	exits 0 "$COLL" report --json "$work/here.flight"
}
ok "its records are what coll report reads and joins" records
holds "... of all ranks" ".job == \"$job\" and .here == 4"
ok "metrics are where they were" answers 200 '^coll_reports_total\{by="http",result="made"\} [1-9]' get /metrics
ok "another page is refused" answers 404 'there is no such page; valid: /jobs' get /nothing
by() {		# HOST TARGET
	host=$1
	get "$2"
	host=
}
ok "a name of elsewhere that resolves to here is told nothing" answers 421 'nothing is told of jobs by this name; valid: ' \
	by evil.example:$port /jobs
ok "... nor of a job" answers 421 'nothing is told' by evil.example "/report.json?job=$job"
ok "... but the metrics, which are of no user" answers 200 '^coll_reports_total' by evil.example /metrics
ok "by the node's name it is told" answers 200 '"jobs"' by "$(uname -n)" /jobs.json
ok "... and by an address" answers 200 '"jobs"' by 127.0.0.1:$port /jobs.json
two_hosts() {
	printf 'GET /jobs.json HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n' | talk $port
}
ok "... and not by two names, one of elsewhere" answers 421 'nothing is told' two_hosts
ok "no page of elsewhere is let read it" sh -c "! grep -qi '^Access-Control' '$work/answer'"
ok "... or have it as a part" found '^Cross-Origin-Resource-Policy: same-origin' answer
ok "... and no browser keeps it" found '^Cache-Control: no-store' answer
ok "... and no job named" answers 400 'the job is missing; valid: ' get /report
long() {
	get "/report?job=$(head -c 3000 /dev/zero | tr "\\0" a)"
}
ok "... and one of 3000 bytes" answers 414 "the target is too long; valid: less than 1024 bytes" long
ok "... and what is not known" answers 400 'a parameter that is not known; valid: job and user' get "/report?job=$job&x=1"
post() {
	printf 'POST /jobs HTTP/1.0\r\nContent-Length: 0\r\n\r\n' | talk "$1"
}
ok "only GET" answers 405 'only GET' post $port
ok "... on the socket as well" answers 405 'only GET' post "$state/reports"

# ---- others --------------------------------------------------------------------------------

garbage() {
	head -c 5000 /dev/zero | talk "$state/reports"
}
ok "what is no request is refused" answers 400 'no request of HTTP' garbage
# Three that say nothing, and one more than a user may have.
for _ in 1 2 3; do
	(sleep 30 | perl "$work/talk" "$state/reports" >/dev/null) &
	jobs="$jobs $!"
done
sleep 0.3
ok "clients that say nothing hold nobody up" quiet late ask
if [ "$(id -u)" = 0 ]; then
	ok "a user who may not make the state's folder is told so" sh -c "! timeout 5 setpriv --reuid=$user --regid=$user \
		--clear-groups '$BUILD/colld' --state '$work/none' --reports owner --metrics 0 2>'$work/said.none' &&
		grep -q 'none/reports: its folder cannot be made: Permission denied; valid: ' '$work/said.none'"
	ok "another user has no such job" answers 404 "no job '$job' of user $user" ask_as $user "/report?job=$job"
	ok "... and is refused root's" answers 403 "user $user is not shown the jobs of user 0" ask_as $user "/report?job=$job&user=0"
	ok "... nor has it a list of them" answers 200 '"jobs": \[\]' ask_as $user /jobs.json
	crowd() {
		for _ in 1 2 3 4; do
			(sleep 30 | setpriv --reuid=$((user + 1)) --regid=$((user + 1)) --clear-groups perl \
				"$work/talk" "$state/reports" >/dev/null) &
			jobs="$jobs $!"
		done
		sleep 0.5
		answers 503 'too many requests' ask_as $((user + 1)) /jobs
	}
	ok "a user has four at once" crowd
	ok "... and others are served" answers 200 '"jobs"' ask_as $user /jobs.json

	"$BUILD/tests/circuit/pass_descriptors" "$state/reports" $((user + 2)) 60 >"$work/passed" 2>&1 &
	jobs="$jobs $!"
	sleep 0.5
	prompt() {
		began=$(date +%s)
		answers 200 '"jobs"' ask /jobs.json && answers 200 coll_reports get /metrics &&
			[ $(($(date +%s) - began)) -le 5 ]
	}
	ok "descriptors whose close takes a minute hold nobody up" prompt

	# A page that a user has made up: rank 1 of 4, of a job that is named as it likes.
	"$COLL" show --dump "$work" "$job" >/dev/null
	cat >"$work/forge" <<'END'
import ctypes, os, struct, sys, time
record, name, user = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
data = open(record, 'rb').read()
page = bytearray(data[data.index(b'COLLFLGT', 8):])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
page[24:28] = struct.pack('=I', os.getpid())
page[40:104] = name.ljust(64, b'\0')
fd = os.memfd_create('coll-flight:1')
os.write(fd, page)
time.sleep(60)
END
	told() {	# ... with $name
		"$1" "$2" | body >"$work/json" && [ -s "$work/json" ] && jq -e --arg name "$name" "$3" "$work/json"
	}
	forge() {	# NAME
		python3 "$work/forge" "$work/coll-$job-1.flight" "$1" $user &
		jobs="$jobs $!"
		quiet soon 10 told get /jobs.json ".jobs[] | select(.user == $user and .job == \$name)"
	}
	name='<script>"&'\''%?a=b'
	ok "a job that is named as it likes is in the list" forge "$name"
	link=$(jq -r --arg name "$name" '.jobs[] | select(.job == $name) | .report' "$work/json")
	ok "... its report is a part" quiet told get "$link" '.job == $name and .here == 1 and .ranks == 4 and .part'
	ok "... and says so" answers 200 'A part: .*1</data> of 4 ranks are here' get "/report?${link#*[?]}"
	ok "... the name is text" sh -c "grep -q '&#60;script&#62;' '$work/answer' && ! grep -q '<script' '$work/answer'"
	ok "... its owner has it" answers 200 '"part": true' ask_as $user "${link%&user=*}"
	for number in $(seq 40); do
		python3 "$work/forge" "$work/coll-$job-1.flight" "many-$number" $((user + 3)) &
		jobs="$jobs $!"
	done
	name="$job"
	ok "of a user with many jobs not all are in the list" quiet soon 30 told get /jobs.json ".more and
		([.jobs[] | select(.user == $((user + 3)))] | length) == 32"
	ok "... of others all are" quiet told get /jobs.json '.jobs[] | select(.job == $name and .here == 4)'
	ok "another user's job of the same name" forge "$name"
	ok "... whose it is has to be said" answers 409 'several users have a job .*; valid: with &user=NUMBER' get "/report?job=$job"
	ok "... and then it is" quiet told get "/report.json?job=$job&user=$user" ".user == $user and .here == 1"
	ok "... or the other" quiet told get "/report.json?job=$job&user=0" '.user == 0 and .here == 4'
else
	skip "other users" "not root"
fi

# ---- its end --------------------------------------------------------------------------------

finish_job() {
	kill $runner
	wait $runner 2>/dev/null
	soon 10 answers 404 "no job '$job' of user $(id -u)" get "/report?job=$job&user=$(id -u)"
}
ok "a job that has ended is gone" finish_job
silent_ends() {
	began=$(date +%s)
	sleep 30 | perl "$work/talk" "$state/reports" >/dev/null &
	quiet_pid=$!
	jobs="$jobs $quiet_pid"
	soon 15 sh -c "! pgrep -P $daemon -x colld-report >/dev/null"
}
ok "who says nothing is ended after ten seconds" silent_ends
end -9
begin --reports anybody --host-names monitor.example,n5.example
ok "by a name of --host-names it is told" answers 200 '"jobs"' by n5.example:1 /jobs.json
ok "... and by no other" answers 421 'names that colld has by --host-names' by n5.example.evil /jobs.json
end -9
begin --reports owner
ok "a successor of one that was killed takes the socket over" answers 200 '"jobs"' ask /jobs.json
ok "... for owners alone: the door for HTTP tells nothing" answers 404 'not served here' get /jobs
end
ok "the socket ends with colld" test ! -e "$state/reports"
begin --reports anybody
for number in 1 2 3 4 5 6 7 8; do
	get "/jobs.json?user=$number" >/dev/null 2>&1 &
	jobs="$jobs $!"
done
sleep 0.05
kill $daemon
wait $daemon
is "colld ends as it should while answers are made" $? 0
tap_end
