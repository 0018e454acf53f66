#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A link is between two processes that have proved to be of this job: somebody else at a rank's
# port gets and gives nothing, and a handshake that was recorded opens no second link.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

forged() {	# ENGINE ARGUMENTS
	forged_engine=$1
	shift
	COLL_ENGINE=$forged_engine "$COLL" run -t 60 -n 2 -- "$BUILD/tests/multi/forged_links" "$@"
}
COLL_SECRET=$(head -c 32 /dev/zero | od -An -tx1 -v | tr -d ' \n')
export COLL_SECRET
refused() {	# REASON ENGINE ARGUMENTS: the ranks' results are right, and one says why
	refused_why=$1
	shift
	said=$(forged "$@" 2>&1) && tap_like "$said" "rank 1: refused a connection .*: $refused_why" ||
		{ printf '%s\n' "$said" | sed 's/^/# /'; return 1; }
}
for engine in uring epoll; do
	for how in silent garbage reflect; do
		ok "an impostor ($how) gets no payload and forges none, $engine" \
			quiet forged $engine impostor $how
	done
	ok "a handshake that was recorded is refused, $engine" \
		refused "it does not prove the secret" $engine recording "$work/recorded"
	ok "... also by the next job with the same secret, $engine" \
		refused "it expects another process" $engine replay "$work/recorded"
done
tap_end
