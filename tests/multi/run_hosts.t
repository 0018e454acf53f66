#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll run --hosts: a job on several hosts by a remote shell. Most tests use a shell that stays
# on this machine; some a real sshd on loopback, if there is one, which ends afterwards.
. "$(dirname "$0")/../lib/tap.sh"

COLL=$(realpath "$COLL")
MEET=$(realpath "$BUILD/tests/multi/boot_meet")
dir=$(mktemp -d)
sshd=
cleanup() {
	[ -z "$sshd" ] || kill "$sshd" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT

# HOST COMMAND: as ssh, its input and output, exit code 255 for a host that is not there.
cat >"$dir/shell" <<'SHELL'
#!/bin/sh
[ "$1" != nowhere ] || { echo "shell: no route to host" >&2; exit 255; }
echo "$1" >>"${0%/*}/called"
export REMOTE_HOST="$1"
exec sh -c "$2"
SHELL
chmod +x "$dir/shell"

try() {	# keeps $out (both streams) and $rc
	out=$(timeout -k 5 60 "$@" 2>&1)
	rc=$?
}
hosts() {	# LIST OPTIONS ...
	list=$1
	shift
	try "$COLL" run --hosts "$list" --ssh "$dir/shell" "$@"
}
alive() {
	grep -lsz "^RUN_HOSTS=$dir\$" /proc/[0-9]*/environ | wc -l
}
gone() {	# within 10 s
	tries=100
	while [ "$(alive)" != 0 ] && [ $tries -gt 0 ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
	[ "$(alive)" = 0 ]
}

hosts a:2,b:3 -- "$MEET" 20 2
is "five ranks on two hosts" "$rc" 0
is "... meet twice" "$(printf '%s\n' "$out" | grep -c 'met all')" 10
is "... a remote shell for each host" "$(sort "$dir/called" | tr '\n' ' ')" "a b "
hosts a:2,b -- sh -c 'echo $REMOTE_HOST $COLL_RANK/$COLL_RANKS $COLL_LOCAL_RANK/$COLL_LOCAL_RANKS'
is "ranks in the order of the hosts, each line with its rank" "$(printf '%s\n' "$out" | sort)" \
	"[0] a 0/3 0/2
[1] a 1/3 1/2
[2] b 2/3 0/1"
hosts a:4,b:4 -n 5 -- sh -c 'echo $REMOTE_HOST'
is "-n takes fewer ranks than --hosts" "$(printf '%s\n' "$out" | grep -c b)" 1
cd /tmp
COLL_ALLREDUCE=ring hosts a,b -e "X=a b'c" -- sh -c 'echo "$PWD $X $COLL_ALLREDUCE $1"' x "y  z"
is "directory, variables, options and arguments arrive unchanged" "$(printf '%s\n' "$out" | sort -u | head -1)" \
	"[0] /tmp a b'c ring y  z"
cd - >/dev/null
hosts a:2,b:2 -- "$COLL" bench barrier --time 0.1
is "coll bench" "$rc" 0

hosts a:2,b:2 -- sh -c '[ $COLL_RANK != 3 ] || exit 7; sleep 60'
is "a rank's exit code" "$rc" 7
like "... and its number" "$out" 'coll run: rank 3 exited with code 7$'
hosts a:2,b:2 -- sh -c '[ $COLL_RANK != 1 ] || kill -9 $$; sleep 60'
is "a rank that was killed" "$rc" 137
hosts a,b --keep-going -- sh -c '[ $COLL_RANK != 0 ] || exit 5; sleep 0.5; echo done'
is "--keep-going: the first failure's code" "$rc" 5
is "... and the other host finishes" "$(printf '%s\n' "$out" | grep -c done)" 1
hosts a,b --timeout 1 --grace 1 -e "RUN_HOSTS=$dir" -- sh -c 'trap "" TERM; while :; do sleep 1; done'
is "--timeout: 124" "$rc" 124
ok "... and ranks that ignore SIGTERM have ended" gone
hosts a,nowhere -- sleep 60
is "a host that does not exist" "$rc" 255
like "... is named" "$out" 'coll run: host nowhere: the remote shell .* failed'
hosts a,b --coll /no/such/coll -- true
is "no coll on the hosts: 127" "$rc" 127
like "... reported" "$out" 'no /no/such/coll \(see --coll\)'
try "$COLL" run --hosts a --ssh /no/such/shell -- true
is "no remote shell: 127" "$rc" 127
like "... reported" "$out" "cannot run the remote shell '/no/such/shell'"
for wrong in "" a: a:0 a:x ,a "a;b" -x; do
	hosts "$wrong" -- true
	is "--hosts '$wrong': 2" "$rc" 2
done
like "... with the valid values" "$out" "--hosts '-x'; valid: name\[:ranks\] with commas between"
hosts a:2,b -n 4 -- true
like "more ranks than --hosts has" "$out" '-n 4; valid with this --hosts: up to 3 ranks'
try "$COLL" run --agent </dev/null
is "--agent without an order: 2" "$rc" 2

# start: four ranks in the background, up.
start() {
	: >"$dir/up"
	env --default-signal=INT "$COLL" run --hosts a:2,b:2 --ssh "$dir/shell" \
		--env "RUN_HOSTS=$dir" "$@" >"$dir/out" 2>&1 &
	job=$!
	tries=200
	while [ "$(grep -c up "$dir/up")" -lt 4 ] && [ $tries -gt 0 ]; do
		sleep 0.05
		tries=$((tries - 1))
	done
}
up="echo up >>$dir/up"
for signal in USR1 TERM INT; do
	start --keep-going -- sh -c "trap 'echo got; exit 0' $signal; $up; while :; do sleep 0.05; done"
	kill -$signal "$job"
	wait "$job"
	is "SIG$signal reaches every rank on every host" "$? $(grep -c got "$dir/out")" "0 4"
done
start -- sh -c "setsid sleep 60 & $up; sleep 60"
kill -9 "$job"
wait "$job" 2>/dev/null
ok "coll run killed: no process remains on any host" gone
start -- sh -c "setsid sleep 60 & $up; sleep 60"
pkill -9 -P "$job" -f "run --agent"
wait "$job"
is "an agent killed: the job fails" $? 137
ok "... and no process remains" gone

# ---- a real sshd ----
if [ -x /usr/sbin/sshd ] && [ "$(id -u)" = 0 ] && command -v ssh-keygen >/dev/null; then
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host" && ssh-keygen -q -t ed25519 -N '' -f "$dir/user"
	mkdir -p /run/sshd
	port=$((20000 + $$ % 10000))
	cat >"$dir/sshd_config" <<CONF
ListenAddress 127.0.0.1:$port
HostKey $dir/host
AuthorizedKeysFile $dir/user.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
CONF
	/usr/sbin/sshd -D -f "$dir/sshd_config" -E "$dir/sshd.log" &
	sshd=$!
	ssh="ssh -T -p $port -i $dir/user -o BatchMode=yes -o StrictHostKeyChecking=no"
	ssh="$ssh -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -F none"
	tries=50
	until $ssh 127.0.0.1 true 2>/dev/null || [ $tries = 0 ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
	try "$COLL" run --hosts 127.0.0.1:2,localhost:2 --ssh "$ssh" -- "$MEET" 20
	is "by ssh: four ranks meet" "$rc $(printf '%s\n' "$out" | grep -c 'met all')" "0 4"
	try "$COLL" run --hosts 127.0.0.1,localhost --ssh "$ssh" -- sh -c 'exit $((COLL_RANK * 9))'
	is "by ssh: an exit code" "$rc" 9
	start --ssh "$ssh" --hosts 127.0.0.1:2,localhost:2 -- sh -c "setsid sleep 60 & $up; sleep 60"
	kill -9 "$job"
	wait "$job" 2>/dev/null
	ok "by ssh: coll run killed, no process remains" gone
else
	skip "by ssh" "it needs root and openssh-server"
fi
tap_end
