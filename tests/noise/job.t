#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll-job: what is pinned and judged around a job, and put back after the last.
. "$(dirname "$0")/../lib/tap.sh"
if [ "$(nproc)" -lt 2 ]; then
	echo "1..0 # SKIP one CPU: there is nowhere to go"
	exit 0
fi
job=$(dirname "$0")/../../daemon/coll-job
work=$(mktemp -d)
. "$(dirname "$0")/../lib/cpus.sh"
name=jb$$
cp "$(command -v sleep)" "$work/$name"
"$work/$name" 60 &
one=$!
cleanup() {
	kill $one
	rm -rf "$work"
} 2>/dev/null
trap cleanup EXIT

export COLL_JOB_CONFIG="$work/config"
configure() {	# LINE...
	printf '%s\n' "COLLNOISE=$(realpath "$BUILD")/collnoise STATE=$work/state" \
		"PIN=\"-c $last -H $first --rule 'pin comm=$name'\"" "$@" >"$COLL_JOB_CONFIG"
}
where() {
	taskset -pc $one | sed 's/.*: //'
}
status() {	# WANTED COMMAND...: keeps what it says
	wanted=$1
	shift
	"$@" >"$work/said" 2>&1
	[ $? = "$wanted" ]
}

configure
ok "a job begins" status 0 "$job" begin one
is "the daemon is moved away" "$(where)" "$first"
ok "another begins" status 0 "$job" begin two
ok "the first ends" status 0 "$job" end one
is "the other is still free of it" "$(where)" "$first"
ok "the last ends" status 0 env SLURM_JOB_ID=x "$job" end two
is "all is as before" "$(where)" "$allowed"
ok "... and forgotten" test ! -e "$work/state/pin.state"

"$BUILD/collnoise" pin init -c "$last" -H "$first" --rule "pin comm=$name" --state "$work/state" >/dev/null
ok "pinned by somebody else: a job begins" status 0 "$job" begin one
ok "... and ends" status 0 "$job" end one
is "... and that is left alone" "$(where)" "$first"
"$BUILD/collnoise" pin fini --state "$work/state" >/dev/null

configure 'NOISE="--duration 100ms --max-share 0"'
ok "a noisy node: the job begins all the same" status 0 env SLURM_JOB_ID=7 "$job" begin
like "... and it is told" "$(cat "$work/said")" 'slurm-7: this node is noisy'
ok "... and ends" status 0 env SLURM_JOB_ID=7 "$job" end
configure 'NOISE="--duration 100ms --max-share 0" STRICT=yes'
ok "strict: it does not begin" status 1 "$job" begin one
is "... and nothing is pinned" "$(where)" "$allowed"
configure "COLL=$(realpath "$COLL")" 'CHECK="--quick --fail-at fail loopback version"'
ok "a fit node: the job begins" status 0 "$job" begin one
is "... and nothing is told" "$(cat "$work/said")" ""
ok "... and ends" status 0 "$job" end one
unfit() {	# STATUS: a node with few ports
	mkdir -p "$work/root/proc/sys/net/ipv4"
	echo 40000 40003 >"$work/root/proc/sys/net/ipv4/ip_local_port_range"
	status "$1" env COLL_DOCTOR_ROOT="$work/root" "$job" begin one
}
configure "COLL=$(realpath "$COLL")" 'CHECK="--quick --fail-at fail ports"'
ok "a node that is not fit: the job begins all the same" unfit 0
like "... and it is told, with the advice" "$(cat "$work/said")" \
	'not fit: fail ports 4, from 40000 to 40003 costs: .* do: sysctl -w'
ok "... and ends" status 0 "$job" end one
configure "COLL=$(realpath "$COLL")" 'CHECK="--quick --fail-at fail ports" STRICT=yes'
ok "strict: it does not begin" unfit 1
configure 'PIN=--nonsense'
ok "wrong options are told, and end nothing" status 0 "$job" begin one
like "... with collnoise's words" "$(cat "$work/said")" "cannot pin: .*nonsense"
ok "... no end of it either" status 0 "$job" end one
ok "a name that is none" status 2 "$job" begin a/b
like "... is told" "$(cat "$work/said")" "'a/b' is not valid"
ok "a name that colld would not see" status 2 "$job" begin .a
configure
rm "$work/state/job.lock" && mkdir "$work/state/job.lock"
ok "no lock: the job begins all the same" status 0 "$job" begin one
like "... and it is told" "$(cat "$work/said")" "cannot write to $work/state"
configure STRICT=yes
ok "strict: it does not begin" status 1 "$job" begin one
rmdir "$work/state/job.lock"
configure
mkdir "$work/state/jobs/one"
ok "a job that cannot be written down begins all the same" status 0 "$job" begin one
like "... and it is told" "$(cat "$work/said")" "cannot write $work/state/jobs/one"
rmdir "$work/state/jobs/one"
ok "no name" status 2 env -u SLURM_JOB_ID "$job" begin
ok "no action" status 2 "$job"
tap_end
