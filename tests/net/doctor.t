#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll doctor in networks of its own: each fault that is planted is found, the advice is carried
# out as it is printed, and then the library does better. Then three nodes at once.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/hosts.sh"
work=$dir
COLL=$(realpath "$COLL")

finding() {	# CHECK FIELD OPTION ...
	finding_check=$1 finding_field=$2
	shift 2
	"$COLL" doctor --quick --json "$@" "$finding_check" | jq -r ".findings[0].$finding_field"
}
follow() {	# CHECK OPTION ...: carries out the advice
	follow_check=$1
	shift
	sh -c "$(finding "$follow_check" advice "$@")" >/dev/null
}

# ---- loopback ----
job() {	# RANKS OPTION ...
	ranks=$1
	shift
	timeout 60 "$COLL" run -t 20 -n "$ranks" --no-prefix "$@" -- "$COLL" bench barrier --time 0.05 \
		>"$work/out" 2>&1
}
is "lo is down: fail" "$(finding loopback level)" fail
ok "... and no job starts" eval '! job 2'
"$COLL" doctor --quick loopback >"$work/out"
is "... exit code 2" $? 2
ok "the advice is carried out" follow loopback
is "... the check is content" "$(finding loopback level)" ok
ok "... and jobs start" job 2

# ---- ports ----
ports=/proc/sys/net/ipv4/ip_local_port_range
was=$(cat $ports)
echo 40000 40003 >$ports
is "four ports: fail" "$(finding ports level)" fail
ok "... and a job of 8 ranks does not start" eval '! job 8 -e COLL_MEMORY=off'
ok "the advice is carried out" follow ports
is "... the check is content" "$(finding ports level)" ok
ok "... and 8 ranks start" job 8 -e COLL_MEMORY=off
echo "$was" >$ports

# ---- congestion control ----
# Two nodes, joined by a cable: the library takes the system's choice there, but none that paces.
setting=/proc/sys/net/ipv4/tcp_congestion_control
host_make; far=$host
ip link add near type veth peer name far netns $far
ip addr add 10.7.0.1/24 dev near
ip link set near up
nsenter -n -t $far sh -c 'ip link set far up; ip addr add 10.7.0.2/24 dev far'
host_shell b $far
takes() {	# the congestion control of links between the two
	timeout 60 "$COLL" run --hosts a,b --ssh "$dir/shell" -e COLL_EXPLAIN=1 -- \
		"$COLL" bench barrier --time 0.05 2>&1 | sed -n 's/.*1 over TCP \([a-z]*\).*/\1/p' | tail -1
}
if grep -qw bbr /proc/sys/net/ipv4/tcp_available_congestion_control && echo bbr >$setting; then
	nsenter -n -t $far sh -c "echo bbr >$setting"
	is "bbr: a note" "$(finding congestion level)" note
	measured() { "$COLL" doctor congestion | tr -s ' \n' ' ' | grep -Eq 'loopback takes [0-9]+ us here, with reno [0-9]+'; }
	ok "... by measurement" soon 5 measured
	like "... the library takes one that does not pace between nodes" "$(takes)" '^(cubic|reno)$'
	ok "the advice is carried out" follow congestion
	is "... the check is content" "$(finding congestion level)" ok
	nsenter -n -t $far sh -c "echo $(cat $setting) >$setting"
	is "... the library takes what is set now" "$(takes)" "$(cat $setting)"
else
	skip "congestion control" "there is no bbr here"
fi

# ---- a WAN: a setting is made in each node, then perhaps the advice is followed ----
# median SETTING CHECK|- BENCH ...: us, of a bcast over 10 ms each way
median() {
	median_set=$1 median_check=$2
	shift 2
	cat >"$work/rank" <<-END
		#!/bin/sh
		sysctl -q -w net.ipv4.tcp_congestion_control=reno
		$median_set
		[ "$median_check" = - ] || sh -c "\$($COLL doctor --quick --json --rtt 20ms --rate 1G $median_check |
			jq -r '.findings[0] | select(.level == "slow").advice // "exit 1"')" >/dev/null || exit 1
		exec $COLL bench bcast --json $*
	END
	chmod +x "$work/rank"
	timeout 100 "$COLL" lab -t 90 -c 1+1 --delay 10ms -- "$work/rank" 2>"$work/err" |
		jq '.results[0].algorithms[0].p50_us | floor'
}
# faster WHAT PERCENT SETTING CHECK BENCH ...: of the time after, the time before is more. Other
# work may hide that once.
faster() {
	what=$1 percent=$2 set=$3 check=$4
	shift 4
	for try in 1 2; do
		before=$(median "$set" - "$@")
		after=$(median "$set" "$check" "$@")
		[ "${before:-0}" -le "$((${after:-0} * percent / 100))" ] || break
	done
	ok "$what: ${before:-no} us before, ${after:-no} us after" \
		test "${before:-0}" -gt "$((${after:-$before} * percent / 100))"
	[ -n "$after" ] || sed 's/^/# /' "$work/err"
}
if "$COLL" lab -c 1 -t 10 -- true 2>/dev/null; then
	faster "idle-restart: 1 MB after a third of a second without data" 125 \
		"sysctl -q -w net.ipv4.tcp_slow_start_after_idle=1" idle-restart --size 1M --pause 0.35 --iterations 9 --warmup 3
	faster "windows: 4 MB, without scaling" 200 "sysctl -q -w net.ipv4.tcp_window_scaling=0" windows \
		--size 4M --iterations 3 --warmup 1
	faster "buffers: 4 MB, with 128 KB each" 200 \
		"sysctl -q -w net.ipv4.tcp_rmem='4096 65536 131072' net.ipv4.tcp_wmem='4096 16384 131072'" \
		buffers --size 4M --iterations 3 --warmup 1
else
	skip "a WAN" "no coll lab here"
fi

# ---- three nodes at once ----
host_make; third=$host
ip link add near2 type veth peer name far2 netns $third
ip addr add 10.8.0.1/24 dev near2
ip link set near2 up
nsenter -n -t $third sh -c 'ip link set far2 up; ip addr add 10.8.0.2/24 dev far2
	ip route add default via 10.8.0.1'
nsenter -n -t $far ip route add default via 10.7.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
for node in self $far $third; do
	[ $node = self ] || nsenter -n -t "$node" sysctl -q -w net.ipv4.tcp_slow_start_after_idle=0 \
		net.ipv4.tcp_congestion_control=reno
done
sysctl -q -w net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_congestion_control=reno
host_shell b $far c $third
# A link carries nothing before the kernel has taken notice of its other end.
link_is_up() { ip -br link show near2 | grep -q ' UP ' && nsenter -n -t "$third" ip -br link show far2 | grep -q ' UP '; }
soon 20 link_is_up
many() {	# OPTION ...
	timeout 100 "$COLL" doctor --quick --hosts a,b,c --ssh "$dir/shell" "$@" >"$work/out" 2>"$work/err"
}
filter='.findings | map(select(.differs)) | map(.check + " " + (.nodes | join(",")))'
many --json
is "three nodes that are alike" "$? $(jq -c "$filter" "$work/out")" '0 []'
jq -r '.findings[] | select(.check == "reach") | "# " + .found' "$work/out"
holds "... each reached each" '.paths.connections == 6'
holds "... three reports" '.hosts == 3 and (.nodes | length) == 3'

nsenter -n -t $third sysctl -q -w net.ipv4.tcp_slow_start_after_idle=1
many --json --fail-at slow idle-restart
is "one restarts idle connections slowly: 2 by --fail-at slow" $? 2
is "... it is named first" "$(jq -r "$filter | .[0]" "$work/out")" "idle-restart c"
many idle-restart
like "... and in the table" "$(sed -n 2p "$work/out")" '^slow +idle-restart +c: idle connections'
many --json idle-restart
nsenter -n -t $third sh -c "$(jq -r '.findings[0].advice' "$work/out")" >/dev/null
many --json idle-restart
is "... its advice is carried out there, and nothing differs" "$? $(jq -c "$filter" "$work/out")" '0 []'

# Something between two of them drops what one sends to the other.
pair() {
	timeout 60 "$COLL" run -t 30 --hosts b,c --ssh "$dir/shell" -e COLL_DEADLINE=4s -- \
		"$COLL" bench barrier --time 0.05 >"$work/pair" 2>&1
}
ip rule add from 10.7.0.2 to 10.8.0.2 blackhole 2>/dev/null || ip route add blackhole 10.8.0.2/32
many --json loopback
is "b and c cannot meet: 2" $? 2
is "... both are named" "$(jq -r "$filter | .[]" "$work/out" | grep reach | sort | tr '\n' ' ')" \
	"reach b,c reach c,b "
like "... with address and reason" "$(jq -r '.findings[0].found' "$work/out")" \
	'c? is not reached from [bc] \(10\.[78]\.0\.2 port [0-9]+\): |unreachable|timed out'
ok "... and their job fails" eval '! pair'
ip rule del from 10.7.0.2 to 10.8.0.2 blackhole 2>/dev/null || ip route del blackhole 10.8.0.2/32
many --json loopback
is "the way is open again" "$? $(jq '.paths.connections' "$work/out")" "0 6"
ok "... and their job runs" pair

# A login that asks a dead name server first takes 10 s.
cat >"$dir/slow" <<END
#!/bin/sh
[ "\$1" != c ] || sleep 10
exec "$dir/shell" "\$@"
END
chmod +x "$dir/slow"
timeout 100 "$COLL" doctor --quick --hosts a,c --ssh "$dir/slow" --json loopback >"$work/out" 2>"$work/err"
is "one logs in 10 s later: nothing is wrong" "$? $(jq -c "$filter" "$work/out")" '0 []'
holds "... both ways are tried" '.paths.connections == 2'

cat >"$dir/lame" <<END
#!/bin/sh
[ "\$1" != c ] || exit 255
exec "$dir/shell" "\$@"
END
chmod +x "$dir/lame"
timeout 100 "$COLL" doctor --quick --hosts a,c --ssh "$dir/lame" --json loopback >"$work/out" 2>"$work/err"
is "a host without a report: 1" $? 1
is "... it is named" "$(jq -r "$filter | .[0]" "$work/out")" "host c"
holds "... the other one's report is there" '.nodes | length == 1'
tap_end
