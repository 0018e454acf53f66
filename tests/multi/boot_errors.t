#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Why a rank cannot join its job is said whole, and in time. With few descriptors all join whom the hard limit lets.
. "$(dirname "$0")/../lib/tap.sh"
unset COLL_CONFIG COLL_JOB COLL_SECRET COLL_STORE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COLL_RANK=0 COLL_RANKS=2 XDG_RUNTIME_DIR="$work/run"
mkdir -m 700 "$work/run"

# refused VARIABLES...: what rank 0 says.
refused() {
	timeout -k 1 30 env "$@" "$COLL" bench barrier --time 10 2>&1
}

long=$(printf '%0270d' 0)
said=$(refused COLL_STORE="$long")
like "a long value that is refused: the message ends with what is valid" "$said" \
	"COLL_STORE='$long' is not valid: .* up to 4 of them with commas between"
said=$(refused COLL_STORE="$long" COLL_PROGRESS=thread)
like "... also where a thread joins" "$said" "up to 4 of them with commas between"

cp "$COLL" "$work/coll"		# there is no coll-store near it
if [ -e /usr/libexec/coll/coll-store ] || [ -e /usr/local/libexec/coll/coll-store ]; then
	skip "without coll-store: all that helps is named" "coll-store is installed here"
else
	said=$(COLL=$work/coll refused COLL_DEADLINE=5s)
	like "without coll-store: all that helps is named" "$said" "coll-store, .* is not installed: .*; coll run needs none"
fi

# With one descriptor less than it takes: each number in turn.
few() {
	for files in 4 5 6 7 8 9 10 11 12; do
		(ulimit -n $files; refused COLL_DEADLINE=1s)
	done
}
said=$(few)
is "without descriptors there is a reason" "$(printf '%s\n' "$said" | grep -Ec '^coll bench: *$')" 0

printf '#!/bin/sh\nsleep 100 &\necho $! >"%s/child"\nsleep 100\n' "$work" >"$work/stays"
chmod +x "$work/stays"
said=$(refused COLL_STORE_PROGRAM="$work/stays" COLL_DEADLINE=2s)
like "a program that stays is no coll-store: the deadline holds" "$said" \
	"cannot start $work/stays, .*: it has not left its parent in time; valid: the coll-store of this version"
child_ended() { ! kill -0 "$(cat "$work/child")" 2>/dev/null; }
ok "... and it has ended, with its children" soon 5 child_ended

# meet RANKS KIND LIMIT SECONDS: so many ranks, each with so many descriptors by its soft (S) or hard (H) limit; what they
# say.
meet() {
	unset COLL_STORE_PROGRAM
	(
		ulimit -Sn "$3" && ulimit -"$2"n "$3"
		rank=0
		while [ $rank -lt "$1" ]; do
			COLL_JOB=few$2$$ COLL_RANK=$rank COLL_RANKS=$1 "$BUILD/tests/multi/boot_meet" "$4" >"$work/met.$rank" 2>&1 &
			rank=$((rank + 1))
		done
		wait
	)
	cat "$work"/met.*
}
is "more ranks than the soft limit of descriptors meet" "$(meet 24 S 20 30 | grep -c 'met all')" 24
like "... than the hard limit: the store says what it lacks" "$(meet 24 H 20 5)" \
	"coll: store of job few.*: Too many open files: it has .* connections of 24 ranks"
tap_end
