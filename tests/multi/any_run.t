#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Several runs are waited for and tested together, by every way of progress.
. "${0%/*}/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# together RANKS PROGRESS ENGINE
together() {
	rm -rf "$work/news" && mkdir "$work/news" &&
		COLL_PROGRESS=$2 COLL_ENGINE=$3 COLL_DEADLINE=30s "$COLL" run -q -t 100 -n "$1" -- \
			"$BUILD/tests/multi/any_run" "$work/news"
}

for ranks in 1 2 5; do
	for progress in call thread helper auto; do
		for engine in uring epoll; do
			ok "$ranks ranks, $progress, $engine" quiet together $ranks $progress $engine
		done
	done
done
tap_end
