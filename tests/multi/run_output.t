#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Input and output of the ranks.
. "$(dirname "$0")/../lib/tap.sh"

out=$($COLL run -n 2 -- sh -c 'echo out; echo err >&2' 2>/dev/null | sort)
is "stdout is prefixed" "$out" "[0] out
[1] out"
out=$($COLL run -n 2 -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null | sort)
is "stderr too, and stays stderr" "$out" "[0] err
[1] err"
out=$($COLL run -n 2 --no-prefix -- echo out)
is "--no-prefix" "$out" "out
out"
is "one rank has no prefix" "$($COLL run -n 1 -- echo out)" "out"
is "... unless requested" "$($COLL run -n 1 --prefix -- echo out)" "[0] out"
is "a last line without a newline gets one" "$($COLL run -n 1 --prefix -- printf 'a\nb' | od -c | head -1)" \
	"$(printf '[0] a\n[0] b\n' | od -c | head -1)"

# Each rank writes its lines in small pieces; none may be cut by another's.
$COLL run -n 4 -- sh -c '
	i=0
	while [ $i -lt 200 ]; do
		printf "rank%s" $COLL_RANK; printf " piece "; printf "%s end\n" $i
		i=$((i + 1))
	done' >"/tmp/run_output.$$" 2>&1
is "lines never mix" "$(grep -Ecx '\[([0-9])\] rank\1 piece [0-9]+ end' "/tmp/run_output.$$") $(wc -l <"/tmp/run_output.$$")" "800 800"
rm -f "/tmp/run_output.$$"

# Long lines on both streams to one place.
out=$($COLL run -n 4 -- sh -c '
	i=0
	while [ $i -lt 10 ]; do
		head -c 50000 /dev/zero | tr "\0" a; echo
		{ head -c 50000 /dev/zero | tr "\0" b; echo; } >&2
		i=$((i + 1))
	done' 2>&1 | awk '{ if ($0 ~ /^\[[0-3]\] (a+|b+)$/ && length($0) == 50004) n++ } END { print n }')
is "long lines of two streams do not mix either" "$out" 80

out=$($COLL run -n 2 -- sh -c 'seq 1 100000' | (sleep 1; wc -l))
is "a slow reader gets everything" "$out" 200000

( $COLL run -n 2 -q -- sh -c 'while :; do echo line; done'; echo $? >"/tmp/run_output.$$" ) | head -1 >/dev/null
is "a reader that closes ends the ranks by SIGPIPE, as without coll run" "$(cat "/tmp/run_output.$$")" 141
rm -f "/tmp/run_output.$$"

$COLL run -n 2 -- sh -c 'echo line; sleep 0.2; echo line; echo here >&2' >/dev/full 2>"/tmp/run_output.$$"
is "a disk without space: exit code 1" $? 1
is "... in words, once, and the ranks go on" "$(sort "/tmp/run_output.$$" | tr '\n' '|')" \
	"[0] here|[1] here|coll run: cannot write standard output: No space left on device|"
rm -f "/tmp/run_output.$$"

out=$(echo input | $COLL run -n 2 -- cat)
is "rank 0 reads the input, the others have none" "$out" "[0] input"

tap_end
