#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise pin moves what the rules say, says what it cannot, and puts all of it back.
. "$(dirname "$0")/../lib/tap.sh"
noise=$BUILD/collnoise
work=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null; rm -rf "$work"' EXIT

if [ "$(nproc)" -lt 2 ]; then
	echo "1..0 # SKIP one CPU: there is nowhere to go"
	exit 0
fi
. "$(dirname "$0")/../lib/cpus.sh"

status() {	# EXPECTED ARGUMENT...
	expected=$1
	shift
	exits "$expected" "$noise" pin "$@"
}

refused() {	# SAID ARGUMENT...
	said=$1
	shift
	ok "refused: collnoise pin $*" status 2 "$@"
	like "  it says why" "$(cat "$work/err")" "$said"
}

cpus_of() {	# PID
	taskset -pc "$1" 2>/dev/null | sed 's/.*: //'
}

# Daemons with a name of their own; the second one has children whenever it is told to.
name=clp$$
cp "$(command -v sleep)" "$work/$name"
"$work/$name" 60 &
quiet_one=$!
cp "$(readlink -f /bin/sh)" "$work/${name}b"
mkfifo "$work/order"
"$work/${name}b" -c 'while read -r _; do sleep 60 & echo $! >"$0.child"; done <"$0"' "$work/order" &
parent=$!
taskset -c "$last" "$work/$name" 60 &
bound=$!
pids="$quiet_one $parent $bound"
exec 3>"$work/order"
sleep 0.2

state="$work/state"
set -- --state "$state" -c "$last" -H "$first" --rule "pin comm=$name*"

# ---- check, init, fini -----------------------------------------------------------------

ok "check" status 0 check "$@" --json
holds "sees them" '.counts["to be moved"] == 2 and .counts["bound on purpose"] == 1'
ok "a dry run" status 0 init "$@" --dry-run
like "says how" "$(cat "$work/out")" "^taskset -pc $first $quiet_one"
is "and does nothing" "$(cpus_of $quiet_one)" "$allowed"
ok "fini without init" status 1 fini --state "$state"
like "says that nothing is pinned" "$(cat "$work/err")" 'nothing is pinned'

ok "init" status 0 init "$@" --json
holds "moves them" '.counts.moved == 2'
holds "and says why not this one" 'any(.pins[]; .state == "bound on purpose" and
	(.reason | test("may run nowhere else")))'
is "it is where it was to go" "$(cpus_of $quiet_one)" "$first"
is "what is bound stays" "$(cpus_of $bound)" "$last"
ok "init again" status 1 init "$@"
like "is refused" "$(cat "$work/err")" 'pin.state is there already: collnoise pin fini first'

echo go >&3
for _ in $(seq 1 200); do
	[ -s "$work/order.child" ] && break
	sleep 0.1
done
child=$(cat "$work/order.child")
pids="$pids $child"
is "a child born since is with its parent" "$(cpus_of "$child")" "$first"

ok "fini" status 0 fini --state "$state" --json
holds "puts back what it moved, and the child" '.counts.restored == 3 and .counts["changed by others"] == 0'
is "everything is as before" "$(cpus_of $quiet_one) $(cpus_of $parent) $(cpus_of "$child")" \
	"$allowed $allowed $allowed"
ok "and forgotten" test ! -e "$state/pin.state"

# ---- names ----------------------------------------------------------------------------------

# A process names itself: root may give what a dry run prints to a shell.
sh -c 'printf "h%s\n:>x\033\377" '$$' >"/proc/$$/comm"; read -r _' <"$work/order" &
hostile=$!
pids="$pids $hostile"
for _ in $(seq 1 200); do
	[ "$(head -n 1 "/proc/$hostile/comm")" = "h$$" ] && break
	sleep 0.1
done
ok "a dry run with a name of two lines" status 0 init -c "$last" -H "$first" --rule "pin comm=h$$*" --dry-run
is "has a line, and what it does to it" "$(cat "$work/out")" "taskset -pc $first $hostile	# h$$?:>x??"
ok "a check" status 0 check -c "$last" -H "$first" --rule "pin comm=h$$*" --json
holds "names it, in JSON as well" '.pins | length == 1 and (.[0].name | test("^h[0-9]+[?]:>x[?][?]$"))'

# ---- others -------------------------------------------------------------------------------

ok "init" status 0 init "$@"
taskset -pc "$last" $quiet_one >"$work/out"
kill "$child"
ok "fini" status 0 fini --state "$state" --json
holds "leaves alone what others changed" '.counts["changed by others"] == 1 and .counts.gone == 0'
is "it is where they want it" "$(cpus_of $quiet_one)" "$last"
taskset -pc "$allowed" $quiet_one >"$work/out"

# ---- rules ----------------------------------------------------------------------------------

printf '# a policy\nhousekeeping %s\napplication %s\nkeep comm=%s\npin comm=%s*\n' "$first" "$last" \
	$name $name >"$work/policy"
ok "a policy" status 0 check --rules "$work/policy" --json --all
holds "the first rule that matches decides" '.counts.kept == 2 and .counts["to be moved"] == 1'
ok "by user" status 0 check -c "$last" -H "$first" --rule "keep uid=4000000" --rule "pin uid=$(id -u)" \
	--json --all
holds "the caller and its parents are kept" 'any(.pins[]; .state == "kept" and .number == '$$')'
ok "by parent" status 0 check -c "$last" -H "$first" --rule "pin parent=$parent" --json --all
holds "it and what it started" 'any(.pins[]; .number == '$parent')'
ok "kernel threads" status 0 check -c "$last" -H "$first" --rule 'pin comm=* kthread' --json --all
holds "bound ones are said to be" '.counts["per CPU"] == 0 or any(.pins[]; .state == "per CPU" and
	(.reason | test("kernel binds")))'

printf '# x\nfoo\n' >"$work/wrong"
refused "wrong:2: there is no 'foo'; valid: housekeeping" check --rules "$work/wrong"
refused "there is no 'colour'" check --rule 'pin colour=red'
refused "for tasks or for interrupts" check --rule 'pin irq=* comm=a'
refused "a rule without words" check --rule keep
refused "uid 'x' is not a number" check --rule 'pin uid=x'
refused "is for housekeeping and for the application" check -c "$last" -H "$last"
refused "init, fini or suggest" frobnicate

# ---- interrupts -------------------------------------------------------------------------------

movable() {	# the first interrupt that may come everywhere and takes a change
	for irq in /proc/irq/[0-9]*; do
		mask=$(cat "$irq/smp_affinity")
		if echo "$mask" >"$irq/smp_affinity"; then
			echo "${irq##*/}"
			return
		fi
	done 2>/dev/null
}
irq=
[ "$(id -u)" = 0 ] && irq=$(movable)
if [ -n "$irq" ]; then
	was=$(cksum <"/proc/irq/$irq/smp_affinity")
	ok "init of interrupt $irq" status 0 init -c "$last" -H "$first" --state "$state" \
		--rule "pin irq=$irq" --json
	holds "moves it, or it was away" '.counts.moved + .counts["away already"] == 1'
	ok "fini" status 0 fini --state "$state"
	is "byte for byte" "$(cksum <"/proc/irq/$irq/smp_affinity")" "$was"
else
	skip "interrupts" "not root, or none can be moved"
fi

# ---- measured, and suggested --------------------------------------------------------------------

ok "init that measures" status 0 init "$@" --measure 0.3 --json
holds "before and after, with confidence" '.noise.before.share_windows.windows > 10 and
	.noise.share_difference.error95 >= 0'
ok "fini" status 0 fini --state "$state"
"$noise" record -d 0.2s -o "$work/capture" -q >"$work/out"
ok "suggest" status 0 suggest "$work/capture"
cp "$work/out" "$work/suggested"
ok "what it suggests is a policy" status 0 check -c "$last" -H "$first" --rules "$work/suggested" --all
tap_end
