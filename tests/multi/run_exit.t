#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# How a job ends: exit codes and messages of coll run.
. "$(dirname "$0")/../lib/tap.sh"

now() { date +%s%N | cut -c1-13; }
# Runs, keeps $out (both streams), $rc and $ms.
try() {
	start=$(now)
	out=$("$@" 2>&1)
	rc=$?
	ms=$(($(now) - start))
}

try $COLL run -n 4 -- true
is "all ranks exit with 0: 0" "$rc" 0
is "... and no message" "$out" ""

try $COLL run -n 4 -- sh -c '[ $COLL_RANK != 2 ] || exit 7; sleep 30'
is "the failing rank's exit code" "$rc" 7
like "... and its number" "$out" '^coll run: rank 2 exited with code 7$'
ok "... without waiting for the other ranks" test "$ms" -lt 4000

try $COLL run -n 4 -- sh -c '[ $COLL_RANK != 3 ] || kill -9 $$; sleep 30'
is "a rank killed by a signal: 128 + signal" "$rc" 137
like "... with its number and the signal" "$out" '^coll run: rank 3 was killed by signal 9 \(Killed\)$'

try $COLL run -n 3 --grace 0.3 -- sh -c 'trap "" TERM; [ $COLL_RANK != 0 ] || exit 1; while :; do sleep 1; done'
is "ranks that ignore SIGTERM are killed after the grace time" "$rc" 1
ok "... at once" test "$ms" -lt 4000

try $COLL run -n 3 --keep-going -- sh -c '[ $COLL_RANK != 0 ] || exit 5; sleep 0.3; echo done'
is "--keep-going: the first failure's exit code" "$rc" 5
is "... and the other ranks finish" "$(printf '%s\n' "$out" | grep -c done)" 2

try $COLL run -n 2 --quiet -- false
is "--quiet: the exit code" "$rc" 1
is "... without a message" "$out" ""

try $COLL run -n 2 --timeout 0.5 -- sleep 30
is "--timeout: 124" "$rc" 124
like "... reported" "$out" 'did not end within 0.5 s'
ok "... in time" test "$ms" -lt 4000

try $COLL run -n 3 -- ./no/such/program
is "no such program: 127" "$rc" 127
is "... reported once" "$out" "coll run: cannot run './no/such/program': No such file or directory"
try $COLL run -n 3 -- /dev/null
is "not executable: 126" "$rc" 126

for wrong in "" "-n 0 true" "-n x true" "-n 2" "-n 2 --bind socket true" "-n 2 --nonsense true" \
	"-n 2 --env X true" "-n 2 --timeout soon true" "-n 70000 true"; do
	try $COLL run $wrong
	is "usage error '$wrong': 2" "$rc" 2
done
like "a wrong value is refused, with the valid ones" "$out" "--ranks '70000'; valid: a whole number from 1 to 65536"
try $COLL run -n 2 --bind socket true
like "... --bind too" "$out" "--bind 'socket'; valid: auto, none, core"
try $COLL run --help
is "--help: 0" "$rc" 0
like "... and the options" "$out" '--keep-going'

try $COLL run -n 1 -e A=1 --env B=x=y -- sh -c 'echo $A $B'
is "--env sets variables" "$out" "1 x=y"
try $COLL run -n 2 --bind core -- sh -c 'grep Cpus_allowed_list /proc/self/status'
ok "--bind core leaves each rank one core" \
	test "$(printf '%s\n' "$out" | grep -Ec ':[[:space:]]*[0-9]+$')" = 2

try $COLL run -n 256 -- sh -c 'echo $COLL_RANK/$COLL_RANKS/$COLL_LOCAL_RANK/$COLL_LOCAL_RANKS'
is "256 ranks start and end" "$rc" 0
is "... all 256" "$(printf '%s\n' "$out" | sort -u | wc -l)" 256
like "... with their numbers" "$out" '^\[255\] 255/256/255/256$'
try sh -c "ulimit -Sn 64; $COLL run -n 100 -- sh -c 'ulimit -Sn'"
is "a low limit of file descriptors suffices, and the ranks get it back" \
	"$rc $(printf '%s\n' "$out" | grep -c '\] 64$')" "0 100"

tap_end
