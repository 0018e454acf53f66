#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll doctor on this node: what is forbidden or limited by seccomp, limits and cgroups is found,
# and with the advice carried out the library does better, by its counters and explanations.
. "${0%/*}/../lib/tap.sh"
COLL=$(realpath "$COLL")
WITHOUT=$(realpath "$BUILD/tests/multi/without_call")
work=$(mktemp -d)
groups=
cleanup() {
	for group in $groups; do
		for task in $(cat "$group/cgroup.procs" 2>/dev/null); do
			echo "$task" >"$group/../cgroup.procs" 2>/dev/null
		done
		rmdir "$group" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

# finding FIELD CHECK [COMMAND ...]: what the doctor says, started by a command
finding() {
	field=$1 check=$2
	shift 2
	"$@" "$COLL" doctor --quick --json "$check" | jq -r ".findings[0].$field"
}
# explained COMMAND ...: what 2 ranks say of their first call, each started by the command
explained() {
	timeout 60 "$COLL" run -t 50 -n 2 --no-prefix -e COLL_EXPLAIN=1 -- "$@" \
		"$COLL" bench allreduce --algo rabenseifner --size 1500K --warmup 0 --iterations 10 --counters --json 2>&1
}

# ---- forbidden system calls ----
is "io_uring is forbidden: slow" "$(finding level io-uring "$WITHOUT" io_uring_setup)" slow
like "... the advice is the seccomp profile" "$(finding advice io-uring "$WITHOUT" io_uring_setup)" \
	'allow io_uring_setup.*seccomp'
like "... the cost is measured" "$("$WITHOUT" io_uring_setup "$COLL" doctor --json io-uring)" 'nothing takes [0-9]+ ns here'
like "... the library takes epoll" "$(explained "$WITHOUT" io_uring_setup)" 'engine epoll'
is "allowed: ok" "$(finding level io-uring)" ok
like "... the library takes io_uring" "$(explained)" 'engine uring'

is "process_vm_readv is forbidden: a note" "$(finding level one-copy "$WITHOUT" process_vm_readv)" note
exposed() {	# COMMAND ...: bytes that are read where they are
	explained "$@" | sed -n 's/.*"exposed_bytes": \([0-9.e+]*\).*/\1/p' |
		awk '$1 > most { most = $1 } END { printf "%d\n", most }'
}
like "... the advice is the seccomp profile" "$(finding advice one-copy "$WITHOUT" process_vm_readv)" 'process_vm_readv.*seccomp'
forbidden=$(exposed "$WITHOUT" process_vm_readv)
allowed=$(exposed)
is "allowed: ok" "$(finding level one-copy)" ok
ok "... bytes read in the sender: $forbidden when forbidden, $allowed when allowed" \
	test "${allowed:-0}" -gt "${forbidden:-0}"

is "memfd_create is forbidden: slow" "$(finding level shared-memory "$WITHOUT" memfd_create)" slow
like "... links go over a socket" "$(explained "$WITHOUT" memfd_create)" 'links: 1 over a Unix socket'
is "allowed: ok" "$(finding level shared-memory)" ok
like "... links go through memory" "$(explained)" 'links: 1 through memory'

# ---- limits ----
limited() {	# LIMITS COMMAND ...
	limits=$1
	shift
	sh -c "$limits
		exec \"\$@\"" sh "$@"
}
is "a limit on files: slow" "$(finding level shared-memory limited 'ulimit -f 64')" slow
like "... links go over a socket, and no rank is killed" "$(limited 'ulimit -f 64' \
	timeout 60 "$COLL" run -t 50 -n 2 --no-prefix -e COLL_EXPLAIN=1 -- "$COLL" bench barrier --iterations 20 2>&1)" \
	'links: 1 over a Unix socket'
cure=$(finding advice shared-memory limited 'ulimit -f 64')
is "... the advice: ulimit -f" "${cure%% #*}" "ulimit -f unlimited"
like "... it is carried out: links go through memory" "$(limited "ulimit -S -f 64
$cure" \
	timeout 60 "$COLL" run -t 50 -n 2 --no-prefix -e COLL_EXPLAIN=1 -- \
	"$COLL" bench barrier --iterations 20 2>&1)" 'links: 1 through memory'

few() {	# a job of 12 ranks, each with these limits
	timeout 60 "$COLL" run -q -t 50 -n 12 --no-prefix -e COLL_MEMORY=off -- \
		sh -c "$1
		exec '$COLL' bench alltoall --algo linear --size 8 --iterations 5" >"$work/out" 2>&1
}
is "14 descriptors: fail" "$(finding level descriptors limited 'ulimit -n 14')" fail
ok "... alltoall of 12 ranks fails" eval '! few "ulimit -n 14"'
ok "... with 1000 it runs" few "ulimit -n 1000"
raise=$(finding advice descriptors limited 'ulimit -n 14')
like "... the advice is to raise the hard limit" "$raise" '^ulimit -n 65536 #'
if limited "set -e
ulimit -n 14
${raise%%;*}" true 2>/dev/null; then
	ok "... it is carried out: it runs" few "ulimit -n 14
${raise%%;*}"
else
	skip "... it is carried out" "a hard limit cannot be raised here"
fi

locked() {
	finding "$1" memlock limited 'ulimit -l 64'
}
is "64 KB of locked memory: a note" "$(locked level)" note
if limited "set -e
ulimit -l 64
$(locked advice)" true 2>/dev/null; then
	is "... the advice is carried out: ok" "$(finding level memlock limited "ulimit -l 64
$(locked advice)")" ok
else
	skip "... the advice is carried out: ok" "a hard limit cannot be raised here"
fi

# ---- cgroups ----
# group CONTROLLER FILE: makes $group, whose file limits it
group() {
	for base in "/sys/fs/cgroup/$1" /sys/fs/cgroup; do
		group=$base/coll-doctor-$$
		mkdir "$group" 2>/dev/null || continue
		groups="$groups $group"
		[ ! -w "$group/$2" ] || return 0
	done
	return 1
}
within() {	# COMMAND ...: in $group
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}
throttled() {
	awk '$1 == "nr_throttled" { print $2 }' "$group/cpu.stat"
}
# two ranks that poll, for half a second
busy() {
	within timeout 60 "$COLL" run -q -t 50 -n 2 -- "$COLL" bench barrier --time 0.5 >/dev/null 2>&1
}
if { group cpu cpu.cfs_quota_us && echo 3000 >"$group/cpu.cfs_quota_us"; } ||
	{ group cpu cpu.max && echo "3000 100000" >"$group/cpu.max"; }; then
	is "3 % of a CPU: slow" "$(finding level quota within)" slow
	busy
	before=$(throttled)
	like "... the cost is counted" "$(finding cost quota within)" 'stopped [0-9]+ times so far, for [0-9]+ ms each'
	like "... or measured" "$(within "$COLL" doctor --json quota)" 'got [0-9]+ % of the time'
	ok "the advice is carried out" sh -c "$(finding advice quota within)"
	start=$(throttled)
	is "... ok" "$(finding level quota within)" ok
	busy
	ok "... stopped $before times before, $(($(throttled) - start)) times after" \
		test "$before" -gt "$(($(throttled) - start))"
else
	skip "a quota of CPU time" "no cgroup of cpu can be made here"
fi
many() {
	within timeout 60 "$COLL" run -q -t 50 -n 6 -- "$COLL" bench barrier --iterations 5 >/dev/null 2>&1
}
if group pids pids.max && echo 6 >"$group/pids.max"; then
	is "six tasks: fail" "$(finding level tasks within)" fail
	ok "... 6 ranks cannot start" eval '! many'
	ok "the advice is carried out" sh -c "$(finding advice tasks within)"
	is "... ok" "$(finding level tasks within)" ok
	ok "... 6 ranks start" many
else
	skip "a limit on tasks" "no cgroup of pids can be made here"
fi
first=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
if [ "$(nproc)" -gt 1 ]; then
	is "one CPU of several: slow" "$(finding level cpuset taskset -c "$first")" slow
	is "... all of them: ok" "$(finding level cpuset)" ok
else
	skip "one CPU of several" "there is one"
fi
tap_end
