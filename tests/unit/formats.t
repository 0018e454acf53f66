#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Two formats of stdout at once, or two works, are refused, whatever the command, and both are named.
. "${0%/*}/../lib/tap.sh"
build=${BUILD:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

refused() {	# FIRST SECOND PROGRAM COMMAND...
	first=$1 second=$2 program=$3
	shift 3
	timeout 10 "$build/$program" "$@" $first $second >"$work/out" 2>"$work/err"
	status=$?
	ok "$program $*: $first and $second are refused" test $status -eq 2 -a ! -s "$work/out"
	like "both are named" "$(cat "$work/err")" "^$program $*: ${first%% *} and ${second%% *}[: ]"
}

for command in "coll bench" "coll sim" "coll sim circuit" "coll sim flit"; do
	# shellcheck disable=SC2086
	refused --json --csv $command
done
refused --dot --goal coll schedule
refused --goal --json coll schedule
refused --trace --json coll show
refused --json --metrics coll show
refused --metrics --json coll doctor
refused --list --json coll doctor
refused --json "--svg $work/a.svg" coll circuit
refused --histogram --json collnoise measure
refused --json --histogram collnoise latency
refused --json "-o -" collnoise measure
refused --table "--plan allreduce" coll sim circuit
refused "--plan allreduce" "--trace $work/trace" coll sim circuit
refused --proof --no-proof coll sim flit
tap_end
