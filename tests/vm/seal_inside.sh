#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Runs in the test machine, which has the kernel's TLS.
export PATH=/bin COLL_PROTECT=seal COLL_DEADLINE=60s

check() {	# WHAT PATTERN COMMAND...: succeeds and says so
	what=$1 pattern=$2
	shift 2
	if "$@" >/tmp/said 2>&1 && { [ -z "$pattern" ] || grep -q "$pattern" /tmp/said; }; then
		echo "ok - $what"
	else
		echo "not ok - $what"
		while read -r line; do echo "# $line"; done </tmp/said
	fi
}
# To each of three peers, and once more where a slow machine made one connect again.
each=' \([3-9]\) sealed connections, \1 by the kernel'
for engine in uring epoll; do
	export COLL_ENGINE=$engine
	check "the kernel seals each connection, $engine" "$each" \
		coll run -t 100 -n 4 -- shared_connections many 20
	check "... where the peer's library does, $engine" "$each" \
		env ODD_WITHOUT_TLS=1 coll run -t 100 -n 4 -- shared_connections many 20
	check "every collective is right, $engine" 'cases' coll run -t 300 -n 3 -- every_collective 40 3
	check "groups, $engine" '' coll run -t 300 -n 3 -- groups
	check "memory is its owner's after a revocation, $engine" '' \
		coll run -t 100 -n 2 -- shared_connections memory receiver
done
