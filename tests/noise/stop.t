#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Daemons of a policy's `stop` lines stand still while a job runs, and come back whatever happens.
. "$(dirname "$0")/../lib/tap.sh"
colld=$BUILD/colld
job=$(dirname "$0")/../../daemon/coll-job
if [ "$(nproc)" -lt 2 ]; then
	echo "1..0 # SKIP one CPU: colld has nothing to divide"
	exit 0
fi
work=$(mktemp -d)
name=stp$$
pids=
group=
cleanup() {
	kill $pids $(cat "$work/run/"* 2>/dev/null)
	if [ -n "$group" ]; then
		thaw
		sleep 0.2
		rmdir "$group"
	fi
	rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT

becomes() {	# WANTED COMMAND...: within twenty seconds
	wanted=$1
	shift
	tries=100
	until [ "$("$@")" = "$wanted" ] || [ $((tries -= 1)) = 0 ]; do
		sleep 0.2
	done
	[ "$("$@")" = "$wanted" ]
}

# A systemd of this test's own: a unit is a process, its number in a file.
mkdir "$work/bin" "$work/run"
cat >"$work/bin/systemctl" <<EOF
#!/bin/sh
unit=
for word; do
	case \$word in
	--*) ;;
	is-active | stop | start) verb=\$word ;;
	*) unit=\$word ;;
	esac
done
if [ -e "$work/hangs" ]; then
	echo \$unit >>"$work/hangs"
	exec sleep 30
fi
pid=\$(cat "$work/run/\$unit" 2>/dev/null)
case \$verb in
is-active) [ ! -e "$work/begins" ] || { echo activating && exit 3; }
	[ ! -e "$work/deaf" ] || exit 1
	[ -n "\$pid" ] && kill -0 \$pid 2>/dev/null || exit 3 ;;
stop) kill \$pid; rm "$work/run/\$unit" ;;
start) [ ! -e "$work/refuses" ] || exit 1
	sleep 300 >/dev/null 2>&1 & echo \$! >"$work/run/\$unit" ;;
esac
EOF
chmod +x "$work/bin/systemctl"
PATH=$work/bin:$PATH
export PATH COLL_JOB_CONFIG="$work/config"
echo "PIN=no STATE=$work/state" >"$COLL_JOB_CONFIG"
systemctl start one.service
runs() {	# UNIT
	systemctl is-active "$1" && echo yes || echo no
}
said() {	# TEXT: how many lines
	grep -c "$1" "$work/said"
}
begin() {
	"$colld" --policy "$work/policy" --state "$work/state" --metrics 0 2>>"$work/said" &
	daemon=$!
	pids="$pids $daemon"
}
watches() {	# colld watches the folder of jobs when all is in force
	grep -ls inotify /proc/$daemon/fdinfo/* >/dev/null && echo yes
}

printf 'pin comm=%s\nstop unit=one.service\nstop unit=two.service\n' "$name" >"$work/policy"
for wrong in "stop" "stop unit=-x.y" "stop unit=noname" "stop cgroup=x" "stop unit=a.b cgroup=/c"; do
	echo "$wrong" >"$work/wrong"
	ok "refused: $wrong" sh -c "! '$colld' --check --policy '$work/wrong' 2>'$work/why'"
	like "  it says why" "$(cat "$work/why")" 'wrong:1: stop needs cgroup=/name or unit='
done
printf 'stop cgroup=/x\nwindow cgroup=/x period=1s open=10ms\n' >"$work/wrong"
ok "refused: a window for who is stopped" sh -c "! '$colld' --check --policy '$work/wrong' 2>'$work/why'"
like "  it says why" "$(cat "$work/why")" 'cgroup /x has a window'

# ---- units -----------------------------------------------------------------------------------

begin
ok "colld watches for jobs" becomes yes watches
is "before a job the daemon runs" "$(runs one.service)" yes
"$job" begin first
ok "while one runs it does not" becomes no runs one.service
"$job" begin second
"$job" end first
is "nor while another one does" "$(runs one.service)" no
"$job" end second
ok "after the last it runs again" becomes yes runs one.service
is "who did not run before does not now" "$(runs two.service)" no
# Of a daemon that takes its time to start: the next job has begun before.
touch "$work/begins"
"$job" begin next
ok "who only begins to run is stopped as well" becomes no sh -c "test -e '$work/run/one.service' && echo yes || echo no"
rm "$work/begins"
"$job" end next
ok "... and is back afterwards" becomes yes runs one.service
touch "$work/deaf"
"$job" begin unasked
ok "a systemd that cannot be asked is told" becomes 1 said "stop one.service: systemctl failed"
rm "$work/deaf"
"$job" end unasked
ok "nothing is left written down" becomes no sh -c "test -e '$work/state/stopped' && echo yes || echo no"

"$job" begin third
ok "stopped again" becomes no runs one.service
kill -9 $daemon
wait $daemon 2>/dev/null
ok "colld dies: it comes back" becomes yes runs one.service
begin
ok "colld is back and the job still there: it is stopped" becomes no runs one.service
kill $daemon
wait $daemon
is "colld ends: it is there before that" "$(runs one.service)" yes
"$job" end third
echo two.service >"$work/state/stopped"
begin
ok "what both left behind is started" becomes yes runs two.service
kill $daemon
wait $daemon

systemctl stop two.service
echo two.service >"$work/state/stopped"
echo nonsense >"$work/wrong"
"$colld" --policy "$work/wrong" --state "$work/state" --metrics 0 2>"$work/why"
is "a colld whose policy is wrong does not begin" $? 1
is "... but starts what another has left stopped" "$(runs two.service)" yes

ignores_children() {	# whoever has begun it did
	env --ignore-signal=CHLD "$colld" --policy "$work/policy" --state "$work/state" --metrics 0 2>>"$work/said" &
	daemon=$!
	pids="$pids $daemon"
}
systemctl stop two.service
ignores_children
ok "a colld that inherits ignored children watches" becomes yes watches
"$job" begin inherited
ok "... and stops a unit" becomes no runs one.service
is "... alone those that ran" "$(cat "$work/state/stopped")" one.service
"$job" end inherited
ok "... and starts it again" becomes yes runs one.service
is "... alone" "$(runs two.service)" no
kill $daemon
wait $daemon
systemctl start two.service

# ---- what cannot be resumed ------------------------------------------------------------------

begin
ok "colld watches again" becomes yes watches
"$job" begin refused
ok "stopped by a job" becomes no runs one.service
: >"$work/refuses"
"$job" end refused
ok "systemd does not start it: that is logged" becomes 1 said 'resume one.service: .*tried again'
is "... and it stays written down" "$(cat "$work/state/stopped")" "$(printf 'one.service\ntwo.service')"
"$job" begin next
sleep 0.5
rm "$work/refuses"
sleep 6
is "... while the next job runs it stays stopped" "$(runs one.service)" no
"$job" end next
ok "... after it, it runs again" becomes yes runs one.service
ok "... and nothing is left written down" becomes no sh -c "test -e '$work/state/stopped' && echo yes || echo no"
"$job" begin refused
ok "stopped once more" becomes no runs one.service
: >"$work/refuses"
"$job" end refused
ok "not started, and no job comes: it is tried again" becomes 2 said 'resume one.service: .*tried again'
rm "$work/refuses"
ok "... and runs" becomes yes runs one.service
kill $daemon
wait $daemon

# ---- a systemd that does not answer ----------------------------------------------------------

: >"$work/hangs"
begin
ok "colld watches once more" becomes yes watches
"$job" begin hanging
ok "systemd does not answer: that is logged" becomes 1 said 'stop: systemd does not answer'
is "... and it was asked once" "$(cat "$work/hangs")" one.service
rm "$work/hangs"
"$job" end hanging
kill $daemon
wait $daemon

# ---- cgroups ---------------------------------------------------------------------------------

. "$(dirname "$0")/cgroup.sh"
thaw() {
	for file in cgroup.freeze:0 freezer.state:THAWED; do
		[ -e "$group/${file%:*}" ] && echo "${file#*:}" >"$group/${file%:*}"
	done
}
if [ -n "$group" ]; then
	sleep 300 &
	pids="$pids $!"
	echo $! >"$group/cgroup.procs"
	echo "stop cgroup=/$name" >>"$work/policy"
	begin
	ok "colld watches for jobs of it" becomes yes watches
	is "a cgroup goes on" "$(frozen)" 0
	"$job" begin fourth
	ok "while a job runs it is frozen" becomes 1 frozen
	kill -9 $daemon
	wait $daemon 2>/dev/null
	ok "colld dies: it goes on" becomes 0 frozen
	begin
	ok "colld is back: it is frozen" becomes 1 frozen
	"$job" end fourth
	ok "after the job it goes on" becomes 0 frozen
	"$job" begin fifth
	ok "frozen for another job" becomes 1 frozen
	kill -9 $(pgrep -P $daemon) $daemon
	wait $daemon 2>/dev/null
	"$job" end fifth
	is "colld dies with its keepers, then the job ends: it is frozen still" "$(frozen)" 1
	printf 'pin comm=%s\n' "$name" >"$work/policy"
	begin
	ok "colld is back, and its policy stops nothing any more: it goes on" becomes 0 frozen
	kill $daemon
	wait $daemon
else
	skip "cgroups" "not root, or no cgroup with a freezer can be made"
fi
tap_end
