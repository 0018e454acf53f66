#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Arguments that mean nothing are ignored, any deadline is one, and a call by the wrong thread
# or by a forked child fails alone.
. "$(dirname "$0")/../lib/tap.sh"

# A sanitizer's malloc says no, too.
export ASAN_OPTIONS="$ASAN_OPTIONS:allocator_may_return_null=1"
rules() {	# ENGINE PROGRESS WHAT
	COLL_ENGINE=$1 COLL_PROGRESS=$2 "$COLL" run -t 60 -n "${RANKS:-4}" -- \
		"$BUILD/tests/multi/argument_rules" "$3"
}
for engine in uring epoll; do
	for progress in call thread; do
		ok "counts off the root, and rank 0's result of an exscan, are ignored, $engine, $progress" \
			quiet rules $engine $progress ignored
		ok "a deadline of 2^64 ns is a year, $engine, $progress" \
			quiet rules $engine $progress deadline
		ok "buffers that overlap are refused, $engine, $progress" \
			quiet rules $engine $progress overlap
		ok "a buffer that one rank forgets is refused at once, $engine, $progress" \
			quiet rules $engine $progress missing
		ok "every error has words of its own, $engine, $progress" \
			quiet rules $engine $progress words
		ok "closing frees all handles, $engine, $progress" \
			quiet rules $engine $progress close
		ok "a child of a rank harms nobody, $engine, $progress" \
			quiet rules $engine $progress fork
	done
done
title="a run that was started and has no memory fails the group"
if [ -n "$SANITIZE" ]; then
	skip "$title" "a sanitizer's malloc needs more address space than there may be"
else
	ok "$title" quiet eval 'RANKS=2 rules uring thread memory'
fi
ok "a call by another thread fails alone, uring, call" quiet rules uring call thread
tap_end
