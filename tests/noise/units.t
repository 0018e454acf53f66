#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The units of systemd: what they forbid, colld does not do. Its system calls are traced from its
# start to its end, with a policy, a reload and a reader of its metrics.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
pids=
group=
trap 'kill $pids 2>/dev/null; [ -z "$group" ] || rmdir "$group"; rm -rf "$work"' EXIT
unit=daemon/colld.service

if ! command -v strace >/dev/null || ! command -v systemd-analyze >/dev/null; then
	echo "1..0 # SKIP strace or systemd is not installed"
	exit
fi
if [ "$(nproc)" -lt 2 ] || ! strace -o /dev/null true 2>/dev/null; then
	echo "1..0 # SKIP one CPU, or tracing is forbidden"
	exit
fi

. "$(dirname "$0")/../lib/cpus.sh"
port=$((20000 + $$ % 10000))
name=unit$$
cp "$(command -v sleep)" "$work/$name"
"$work/$name" 60 &
pids=$!
# A window gives colld a real-time priority, where its cgroup can be frozen.
. "$(dirname "$0")/cgroup.sh"
printf 'housekeeping %s\npin comm=%s\nwindow cgroup=/%s period=500ms open=400ms\n' "$first" $name $name \
	>"$work/policy"
ok "the policy is good" quiet "$BUILD/colld" --policy "$work/policy" --check
strace -f -qq -o "$work/calls" "$BUILD/colld" --policy "$work/policy" --state "$work/state" \
	--interval 1s --metrics $port >"$work/out" 2>&1 &
tracer=$!
serves() {
	curl -s --max-time 2 "http://127.0.0.1:$port/metrics" >"$work/metrics" 2>/dev/null ||
		wget -qO "$work/metrics" "http://127.0.0.1:$port/metrics" 2>/dev/null ||
		perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or exit 1;
			print $s "GET /metrics HTTP/1.0\r\n\r\n"; print while <$s>' $port >"$work/metrics" 2>/dev/null
}
ok "colld serves its metrics" soon 20 serves
daemon=$(pgrep -P $tracer -x colld | head -1)
kill -HUP ${daemon:-$tracer}
sleep 2
kill ${daemon:-$tracer}
wait $tracer

names() {
	sed -n 's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p' "$work/calls" | grep -v '^exit' | sort -u
}
# expand SET...: the system calls of systemd's sets.
expand() {
	for set in "$@"; do
		systemd-analyze syscall-filter "$set" 2>/dev/null | sed -n 's/^ *//; /^[a-z@]/p' |
			grep -v '^#' | sed 1d | while read -r word; do
			case $word in
			@*) expand "$word" ;;
			*) echo "$word" ;;
			esac
		done
	done | sort -u
}
expand @system-service >"$work/may"
expand $(sed -n 's/^SystemCallFilter=~//p' $unit) >"$work/may_not"
names >"$work/does"
ok "its calls were traced" test "$(wc -l <"$work/does")" -gt 30
ok "among them sched_setaffinity" grep -qx sched_setaffinity "$work/does"
if [ -n "$group" ]; then
	ok "among them sched_setscheduler" grep -qx sched_setscheduler "$work/does"
else
	skip "sched_setscheduler" "no cgroup with a freezer can be made"
fi
ok "systemd's sets were read" test "$(wc -l <"$work/may")" -gt 200 -a "$(wc -l <"$work/may_not")" -gt 30
forbidden() {
	comm -23 "$work/does" "$work/may"
	comm -12 "$work/does" "$work/may_not"
}
ok "SystemCallFilter= allows all of them" silent forbidden

families=$(sed -n 's/^RestrictAddressFamilies=//p' $unit | tr ' ' '|')
other_families() { grep -o ' socket(AF_[A-Z0-9]*' "$work/calls" | grep -Ev "\\(($families)\$"; }
ok "RestrictAddressFamilies= too" silent eval '! other_families'
writable_code() { grep -E ' (mmap|mprotect|pkey_mprotect)\(.*PROT_WRITE\|PROT_EXEC' "$work/calls"; }
ok "MemoryDenyWriteExecute= too" silent eval '! writable_code'
# Relative to the folder it starts in, / for systemd, it opens nothing for writing.
writes() {
	grep -E ' (open|openat|creat|mkdir|mkdirat|rename|renameat|renameat2|unlink|unlinkat)\(' "$work/calls" |
		grep -E 'O_WRONLY|O_RDWR|O_CREAT|mkdir|rename|unlink' | grep -o '"[^"]*"' | tr -d '"' |
		grep -Ev "^(/proc/|/sys/|/dev/null|$work/state|pin\.|[a-z.]*$)"
}
ok "ProtectSystem= too: it writes to its state, /proc and /sys alone" silent eval '! writes'
devices() { grep -o '"/dev/[^"]*"' "$work/calls" | grep -Ev '"/dev/(null|zero|full|random|urandom|tty|shm/.*)"'; }
ok "PrivateDevices= too" silent eval '! devices'

for file in daemon/colld.service "daemon/coll-job@.service"; do
	sed "s|/usr/local/sbin/[a-z-]*|/bin/true|" "$file" >"$work/${file##*/}"
	verify() {
		systemd-analyze verify --man=no "$work/${file##*/}" 2>&1 | grep "${file##*/}:"
	}
	ok "${file##*/}: systemd knows every setting" silent eval '! verify'
done
exposure() {	# UNIT MOST, in tenths
	figure=$(systemd-analyze security --offline=yes "$1" 2>/dev/null |
		sed -n 's/.*exposure level for .*: \([0-9]*\)\.\([0-9]\).*/\1\2/p')
	[ "${figure:-999}" -le "$2" ]
}
ok "colld.service: an exposure of 3.5 at most" exposure daemon/colld.service 35
ok "coll-job@.service: an exposure of 6.0 at most" exposure daemon/coll-job@.service 60
tap_end
