#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Threads that call at once in groups of their own, and threads that take turns.
. "$(dirname "$0")/../lib/tap.sh"

threads() {	# RANKS VARIABLES WHAT
	threads_ranks=$1
	shift
	env "$@" "$COLL" run -t 100 -n "$threads_ranks" -- "$BUILD/tests/multi/threads_at_once" "$what"
}
for engine in uring epoll; do
	what=many
	ok "four threads call at once, $engine" quiet threads 3 COLL_ENGINE=$engine COLL_PROGRESS=thread
	what=turns
	for progress in call thread auto; do
		ok "threads take turns, $engine, $progress" quiet threads 3 COLL_ENGINE=$engine \
			COLL_PROGRESS=$progress COLL_THREADS=any
	done
done
tap_end
