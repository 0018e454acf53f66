#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Who reaches colld by HTTP keeps nobody else from it: not by connections, from whatever address they come, not by half
# requests, and not by reading slowly; and what many ask for is there once.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/live_job.sh"
trap 'exit 1' HUP INT TERM
if [ -e /etc/coll/policy ]; then
	echo "1..0 # SKIP this node has a policy, which colld would put in force"
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP other users: not root"
	exit 0
fi
chmod 755 "$work"
port=$((20000 + $$ % 10000))
user=$((64000 + $$ % 500))
ranks=256
as() {		# USER COMMAND ...
	who=$1
	shift
	setpriv --reuid="$who" --regid="$who" --clear-groups "$@"
}
curl_as() {	# USER TARGET
	who=$1 target=$2
	shift 2
	as "$who" curl -sS --max-time 8 "$@" "http://127.0.0.1:$port$target"
}
metric() {	# NAME
	curl_as $((user + 1)) /metrics | sed -n "s/^$1 //p"
}
at_least() {	# NUMBER NAME
	[ "$(metric "$2")" -ge "$1" ]
}
# --interval: nothing but the clients themselves wakes colld.
"$BUILD/colld" --state "$work/state" --metrics $port --reports anybody --interval 1h 2>"$work/log" &
daemon=$!
jobs="$jobs $daemon"
soon 10 quiet metric coll_http_connections_refused_total

# many COUNT SECONDS: connections that say nothing, from as many addresses of this node.
cat >"$work/many" <<'END'
import os, socket, sys, time
user, port, count, seconds = map(int, sys.argv[1:])
os.setresuid(user, user, user)
all = []
for i in range(count):
    s = socket.socket()
    s.bind(("127.0.0.%d" % (i + 2), 0))
    s.settimeout(2)
    try:
        s.connect(("127.0.0.1", port))
        all.append(s)
    except OSError:
        pass
print("ready", flush=True)
time.sleep(seconds)
END
python3 "$work/many" $user $port 60 8 >"$work/many.said" &
jobs="$jobs $!"
ok "a user with 60 connections" quiet soon 15 grep -q ready "$work/many.said"
ok "... has most of them refused" soon 5 at_least 40 coll_http_connections_refused_total
ok "... and another is answered" quiet curl_as $((user + 1)) /metrics

# slow SECONDS: a request of a byte a second. Prints for how long that was let go on.
cat >"$work/slow" <<'END'
import os, socket, sys, time
user, port, seconds = map(int, sys.argv[1:])
os.setresuid(user, user, user)
s = socket.socket()
s.connect(("127.0.0.1", port))
s.settimeout(1)
began = time.time()
text = b"GET /metrics HTTP/1.0\r\nX-A: " + b"a" * seconds
try:
    for i in range(min(len(text), seconds)):
        s.send(text[i:i + 1])
        try:
            if not s.recv(1):
                break
        except TimeoutError:
            pass
except OSError:
    pass
print(int(time.time() - began))
END
slow_ends() {
	lasted=$(timeout 60 python3 "$work/slow" $((user + 5)) $port 40)
	echo "# a request of a byte a second: after $lasted s"
	[ "${lasted:-99}" -le 20 ] && [ "$lasted" -ge 9 ]
}
ok "a request that does not come within its time is ended" slow_ends
ok "... and counted" soon 5 at_least 1 coll_http_connections_slow_total

# ---- one text for all -----------------------------------------------------------------

live A=A timeout -k 1 60 "$COLL" run -q -n 4 --bind none --no-prefix -- "$BUILD/tests/multi/late_rank" 0 3 5
sleep 2
"$COLL" show --dump "$work" "$job" >/dev/null
finish
chmod 644 "$work"/*.flight
jobs=$daemon
mkfifo "$work/hold"
"$BUILD/tests/load/pages" $ranks "$work/coll-$job-0.flight" <"$work/hold" >"$work/ready" 2>&1 &
jobs="$jobs $!"
exec 9>"$work/hold"
ok "a job of $ranks ranks" quiet soon 60 grep -q ready "$work/ready"

# readers USER COUNT TARGET: each reads the head of its answer, and no more.
cat >"$work/readers" <<'END'
import os, socket, sys, time
user, port, count, target = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
os.setresuid(user, user, user)
all = []
for i in range(count):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", port))
    s.sendall(("GET %s HTTP/1.0\r\n\r\n" % target).encode())
    all.append(s)
print("asked", flush=True)
print(sum(s.recv(12).endswith(b"200") for s in all), flush=True)
time.sleep(75)
END
readers() {
	who=$1
	shift
	python3 "$work/readers" "$who" $port "$@" >"$work/readers.$who" &
	jobs="$jobs $!"
}
kb() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$daemon/status
}
before=$(kb)
for one in 2 3; do
	readers $((user + one)) 8 "/report.flight?job=pages&user=0"
done
all_read() {
	[ "$(cat "$work"/readers.* | grep -c '^8$')" = 2 ]
}
ok "sixteen clients that ask for its records at once get them" quiet soon 40 all_read
after=$(kb)
size=$(curl_as $((user + 4)) "/report.flight?job=pages&user=0" -o /dev/null -w '%{size_download}')
size=$((size / 1024))
echo "# colld's memory before, after, the records, kB: $before $after $size"
ok "... of one copy" [ "$size" -gt 4000 -a $((after - before)) -lt $((2 * size)) ]
ok "... and meanwhile others are answered" quiet curl_as $((user + 1)) /jobs.json
full() {
	curl_as $((user + 1)) "/report.flight?job=pages" | grep -q 'have all memory that there is for them; ask in'
}
ok "... a second long one has no room beside it" full
if [ -n "$COLL_TEST_LONG" ]; then
	ok "who does not read on is cut off" quiet soon 75 at_least 17 coll_http_connections_slow_total
	ok "... and the room is free" quiet soon 5 curl_as $((user + 1)) "/report.flight?job=pages" -f -o /dev/null
else
	skip "who does not read on is cut off" "a minute: COLL_TEST_LONG=1"
fi
exec 9>&-
kill $daemon
wait $daemon
is "colld ends as it should while clients read" $? 0
tap_end
