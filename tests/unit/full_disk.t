#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# What a command prints cannot be written, as on a full disk: it says so, and exits with 1.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

says() {	# WHAT PROGRAM ARGUMENT ...
	what=$1 program=$2
	shift 2
	"$BUILD/$program" "$@" >/dev/full 2>"$work/err"
	is "$what: 1" $? 1
	is "... in words" "$(tail -n 1 "$work/err")" \
		"$program $1: cannot write standard output: No space left on device"
}
says "coll --help" coll --help
says "the help of a command" coll verify --help
says "a script for completion" coll completion bash
says "coll verify --list" coll verify --list
says "coll show --json" coll show --json
says "coll show --metrics" coll show --metrics
says "coll doctor --json" coll doctor --quick --json version
says "coll sim" coll sim barrier --ranks 4
says "coll schedule" coll schedule barrier dissemination 4
says "collnoise --help" collnoise --help
says "collnoise measure --json" collnoise measure -d 10ms --json
"$BUILD/collnoise" record -d 10ms -o "$work/capture" >/dev/null
says "collnoise export" collnoise export --to csv "$work/capture"
says "collnoise import -o -" collnoise import -o - "$work/capture"
says "collnoise record -o -" collnoise record -d 10ms -o -
is "... once" "$(grep -c 'No space left' "$work/err")" 1

# What takes long is not begun for a file that cannot be, and is told if the file cannot be written.
for arguments in "measure -o" "measure --settings" "measure --plot" "record -o" \
	"inject --user periodic:period=10ms,duration=100us -o" \
	"inject --user periodic:period=10ms,duration=100us --log" "latency --user --plot" "calibrate --plot"; do
	timeout 20 "$BUILD/collnoise" $arguments /nowhere/file.svg -d 60s >"$work/out" 2>"$work/err"
	is "collnoise $arguments to where there is no folder: 1 at once" $? 1
	is "... in words" "$(cat "$work/err")" \
		"collnoise ${arguments%% *}: cannot write /nowhere/file.svg: No such file or directory"
done
for arguments in "bench barrier --time 60 --plot" "bench barrier --time 60 --samples" "sim barrier --plot" \
	"sim replay sim/traces/ft-a-16.trace --alike --timeline" "report --watch 1h no-job --html" \
	"sim barrier --timeline" "sim flit --interval 100 --series" "sim flit --distribution" "circuit show --svg"; do
	# shellcheck disable=SC2086
	timeout 20 "$BUILD/coll" $arguments /nowhere/file.svg >"$work/out" 2>"$work/err"
	is "coll $arguments to where there is no folder: 1 at once" $?/"$(cat "$work/out")" 1/
	like "... in words" "$(cat "$work/err")" \
		"^coll ${arguments%% *}[a-z ]*: cannot write /nowhere/file.svg: No such file or directory"
done
"$BUILD/collnoise" measure -d 10ms -o /dev/full >"$work/out" 2>"$work/err"
is "collnoise measure -o to a full disk: 1" $? 1
is "... in words" "$(cat "$work/err")" "collnoise measure: cannot write /dev/full: No space left on device"
ok "... and the table is there" grep -q '^CPU ' "$work/out"

"$BUILD/colld" --status --state "$work" --json >/dev/full 2>"$work/err"
is "colld --status: 1" $? 1
is "... in words" "$(cat "$work/err")" "colld: --status: cannot print it: No space left on device"
tap_end
