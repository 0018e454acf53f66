#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll doctor's command line, output and exit codes; states of a node are planted as files.
. "$(dirname "$0")/../lib/tap.sh"
COLL=$(realpath "$COLL")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
plant() {	# PATH TEXT
	mkdir -p "$root/$(dirname "$1")"
	printf '%s\n' "$2" >"$root/$1"
}
planted() {	# OPTION ...: the doctor's output, of the planted node
	COLL_DOCTOR_ROOT=$root "$COLL" doctor --quick "$@" 2>"$work/err"
}
level() {	# CHECK
	planted --json "$1" | jq -r '.findings[0].level'
}

# ---- a fault, a check ----
plant proc/sys/net/ipv4/tcp_congestion_control cubic
plant proc/sys/net/ipv4/tcp_slow_start_after_idle 0
for fault in "net/ipv4/tcp_slow_start_after_idle 1 idle-restart slow" \
	"net/ipv4/tcp_congestion_control bbr congestion note" \
	"net/ipv4/tcp_rmem 4096/4096/65536 buffers slow" \
	"net/ipv4/ip_local_port_range 1000/1001 ports fail" \
	"kernel/sched_rt_runtime_us 100000 realtime note" \
	"kernel/numa_balancing 1 numa note"; do
	set -- $fault
	plant proc/sys/net/ipv4/tcp_wmem "4096 4096 9000000"
	plant proc/sys/kernel/sched_rt_period_us 1000000
	plant sys/devices/system/node/online 0-1
	plant "proc/sys/$1" "$(echo "$2" | tr / ' ')"
	is "$1 $2: $4" "$(level "$3")" "$4"
	like "... with a cost and an advice" "$(planted "$3")" '^ +do: '
	rm -r "$root"
done
mkdir -p "$root"
is "what cannot be read is unknown, not good" "$(level idle-restart)" unknown

# ---- exit codes ----
plant proc/sys/net/ipv4/tcp_slow_start_after_idle 1
code() {	# WANTED OPTION ...
	code_wanted=$1
	shift
	planted "$@" >"$work/out"
	[ $? = "$code_wanted" ]
}
ok "slow: 0, since fail is what fails" code 0 idle-restart
ok "... 2 by --fail-at slow" code 2 --fail-at slow idle-restart
ok "... 2 by --fail-at note" code 2 --fail-at note idle-restart
ok "... 0 by --fail-at never" code 0 --fail-at never idle-restart
ok "... the same with JSON" code 2 --fail-at slow --json idle-restart
ok "... and with metrics" code 2 --fail-at slow --metrics idle-restart
plant proc/sys/net/ipv4/ip_local_port_range "1 2"
ok "fail: 2" code 2 ports
refused() {	# PATTERN OPTION ...
	pattern=$1
	shift
	ok "refused: $*" code 2 "$@"
	like "... in words" "$(cat "$work/err")" "$pattern"
}
refused "there is no check 'nonsense'; valid: io-uring memlock" nonsense
refused "there is no check 'nonsense'; valid: io-uring memlock" --explain nonsense
refused "'bad'; valid: note, slow, fail or never|--fail-at 'bad'" --fail-at bad
refused "25G" --rate 10X
refused "25G" --rate nan
refused "25G" --rate G
refused "names with commas" --hosts "a;b"
refused "valid with --hosts: --json" --hosts a --metrics
"$COLL" doctor --quick version >/dev/full 2>/dev/null
is "output that cannot be written: 1" $? 1

# ---- output ----
planted --json >"$work/out"
holds "JSON: a level of each check" '[.findings[].level] | all(IN("ok", "unknown", "note", "slow", "fail"))'
holds "... the worst is the worst" '.worst == "fail"'
holds "... cost and advice where something is to be done" \
	'[.findings[] | select(.level | IN("note", "slow", "fail")) | .cost != null and .advice != null] | all'
is "--list has all of them, in that order" "$("$COLL" doctor --list | cut -d ' ' -f 1)" \
	"$(jq -r '.findings[].check' "$work/out")"
planted >"$work/table"
is "table: the worst first" "$(sed 's/ .*//; /^$/d' "$work/table" | head -1)" fail
is "... no line is longer than 100 columns" "$(awk 'length > 100' "$work/table")" ""
planted --metrics ports >"$work/out"
is "OpenMetrics" "$(grep -v '^#' "$work/out")" 'coll_doctor_level{check="ports",found="2, from 1 to 2"} 4
coll_doctor_worst 4'
is "... ends as it should" "$(tail -1 "$work/out")" "# EOF"

# ---- texts ----
unexplained() {
	"$COLL" doctor --list | while read -r check rest; do
		"$COLL" doctor --explain "$check" | tr -s ' \n' ' ' | grep -Fq "looks at: $rest" || echo "$check"
	done
}
ok "--explain knows each check" silent unexplained
offered() {
	"$COLL" completion bash >"$work/completion"
	"$COLL" doctor --list | while read -r check rest; do
		grep -q "[' ]$check[' ]" "$work/completion" || echo "$check"
	done
}
ok "each check is completed" silent offered
# A cost names a page that is there.
pages() {
	"$COLL" doctor --list | while read -r check rest; do
		"$COLL" doctor --explain "$check"
	done | grep -Eo '(docs/[a-z/-]+|README)\.md' | sort -u
}
missing_pages() {
	pages | while read -r page; do [ -e "$page" ] || echo "$page"; done
}
ok "costs name pages" test "$(pages | wc -l)" -gt 4
ok "... that are there" silent missing_pages

# ---- the probes ----
start=$(date +%s%N)
DOCTOR_TEST=$work "$COLL" doctor >"$work/out" 2>&1
took=$((($(date +%s%N) - start) / 1000000))
ok "all probes in $took ms" test $took -lt "$(limit 3000 20000)"
# ---- a host that never comes; all others are this one ----
cat >"$work/shell" <<'END'
#!/bin/sh
[ "$1" != c ] || exec sleep 100
shift
exec sh -c "$*"
END
chmod +x "$work/shell"
DOCTOR_TEST=$work timeout 60 "$COLL" doctor --quick --timeout 6s --hosts a,b,c --ssh "$work/shell" --json version >"$work/out" 2>"$work/err"
is "a host that does not come: 1" $? 1
holds "... the others have tried each other before --timeout" '.paths.connections == 2'
if command -v script >/dev/null; then
	export DOCTOR_TEST="$work"
	script -qec "timeout 60 $COLL doctor --quick --timeout 6s --hosts a,b,c --ssh $work/shell version" "$work/typescript" >/dev/null 2>&1
	unset DOCTOR_TEST
	ok "... a terminal says for which host, and how long" \
		grep -q '2 of 3 hosts read, 2 have tried the others; [2-5] of 6 s, for c ' "$work/typescript"
else
	skip "... a terminal says for which host" "script is not installed"
fi
is "no process is left" "$(grep -lsz "^DOCTOR_TEST=$work\$" /proc/[0-9]*/environ | wc -l)" 0
tap_end
