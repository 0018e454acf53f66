#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The option protect: none, proof and seal. Sealed jobs do all that others do.
. "$(dirname "$0")/../lib/tap.sh"
M=$BUILD/tests/multi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

under() {	# LEVEL ENGINE RANKS PROGRAM ...
	under_level=$1 under_engine=$2 under_ranks=$3
	shift 3
	COLL_PROTECT=$under_level COLL_ENGINE=$under_engine COLL_DEADLINE=30s \
		"$COLL" run -t 170 -n "$under_ranks" -- "$@"
}
few=20
for engine in uring epoll; do
	for level in none seal; do
		ok "every collective is right, $level, $engine" quiet \
			under $level $engine 5 "$M/every_collective" $few 1
	done
	ok "... sealed, with short reads and writes, $engine" quiet env COLL_INJECT=short:probability=0.3 \
		COLL_PROTECT=seal COLL_ENGINE=$engine "$COLL" run -t 170 -n 4 -- "$M/every_collective" $few 2
	ok "... between clusters, with streams, $engine" quiet env COLL_CLUSTERS=2+2 COLL_WAN_STREAMS=3 \
		COLL_LINK_CHUNK=16K COLL_PROTECT=seal COLL_ENGINE=$engine \
		"$COLL" run -t 170 -n 4 -- "$M/every_collective" $few 3
	ok "groups share sealed connections, $engine" quiet under seal $engine 4 "$M/groups"
	for what in "many 100" alone "memory sender" "memory receiver" order; do
		ranks=4
		case $what in memory*|order) ranks=2 ;; esac
		# shellcheck disable=SC2086
		ok "... $what, $engine" quiet under seal $engine $ranks "$M/shared_connections" $what
	done
	for way in kill cut link stop; do
		COLL_PROTECT=seal COLL_ENGINE=$engine "$COLL" run -q -k -n 4 -t 30 --no-prefix -- \
			"$M/rank_failures" allreduce $way 2 >"$work/said" 2>&1
		is "a lost rank is named by all others: $way, sealed, $engine" \
			"$(grep -c '^survived$' "$work/said")" 3
	done
done

both() {	# ranks 0 and 1 with levels of their own
	"$COLL" run -t 30 -n 2 -- sh -c 'export COLL_PROTECT=$([ $COLL_RANK = 0 ] && echo '"$1"' || echo '"$2"')
		exec '"$M/argument_rules overlap" 2>&1
}
like "ranks with different levels do not compute" "$(both proof seal)" \
	"option protect: rank 0 has 'proof', rank 1 'seal'; valid: the same on all ranks"
like "... nor is a level lowered" "$(both none seal)" "rank 0 has 'none', rank 1 'seal'"
like "a wrong level is named" "$(both no no)" "option protect: 'no' is not none, proof or seal"
like "the kernel's thread cannot seal" "$(COLL_PROTECT=seal COLL_PROGRESS=kernel "$COLL" run -n 2 -- \
	"$M/argument_rules" overlap 2>&1)" "'kernel' is not possible with protect=seal"

tap_end
