#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# measure=always, and no option of noise: where messages are late for a while, redundant exchanges are
# taken, on all ranks after the same call, and given up afterwards. A rank that comes late is no noise.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lines.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export COLL_DEADLINE=30s COLL_MEASURE=always COLL_MEMORY=off
late='link:poisson:rate=50,duration=3ms,model=occupancy'

# job CALLS ARGUMENTS -- NAME=VALUE ...
job() {
	arguments=
	while [ "$1" != -- ]; do
		arguments="$arguments $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	env "$@" timeout 100 "$COLL" run -n 4 -- ${alone:+env COLL_LOCAL_RANK=0 COLL_LOCAL_RANKS=1} \
		"$BUILD/tests/multi/noise_follow" $arguments \
		>"$work/all" 2>&1 || { sed 's/^/# /' "$work/all"; return 1; }
	sed 's/^\[0\] //' "$work/all" >"$work/out"
}
show() { sed -n "s/^\\([a-z]*: .* ranks: [^(]*([^(]*\\).*/# \\1/p" "$work/out"; }

follows() {
	job 0 -- COLL_INJECT="$late" "$@" || return 1
	show
	grep -q '^before: .*:T=' "$work/out" && return 1
	grep -q '^after: .*:T=' "$work/out" && return 1
	has '^noise: .*-re(dundant|layed):T=[1-9].*of links .*, measured before call [0-9]+\)' \
		'^# link_noise .* late messages, lately [0-9]+ in [0-9]+ exchanges; since call [0-9]+$'
}
ok "T is taken while messages are late, and given up afterwards" thrice follows COLL_ENGINE=uring
ok "... with epoll" thrice follows COLL_ENGINE=epoll
ok "... with a progress thread" thrice follows COLL_PROGRESS=thread

comes_late() {
	job 1600 late 1 1000 -- A=a && show && grep '^# rank' "$work/out"
	has '^late: redundant 0 times' '^# rank 1 came late [0-9]+ times lately, by [0-9.]+[um]s on average'
}
ok "a rank that comes late to its calls is named, and no noise" thrice comes_late
# no_noise ARGUMENTS -- NAME=VALUE ...: none of links is found.
no_noise() {
	job "$@" && show && ! grep '^# link_noise' "$work/out" && has '^late: redundant 0 times'
}
for us in 300 1000 6000; do
	ok "... nor with shared memory, where it finds messages that lay there: by up to $us us" \
		thrice no_noise 900 late 1 "$us" -- COLL_MEMORY=auto
done
for engine in uring epoll; do
	ok "ranks that compute between start and test are none with $engine" \
		thrice no_noise 600 busy 1 1000 -- COLL_ENGINE=$engine
	ok "... with shared memory" thrice no_noise 600 busy 1 1000 -- COLL_ENGINE=$engine COLL_MEMORY=auto
done

# A rank that is late more often than not becomes a leaf, where the network is so slow that a tree gains
# more than its messages cost, and an operation takes so long that no rank adds up all vectors. Each rank
# takes itself for the only one of its node: where ranks share cores messages cost more. What else disturbs the machine is none of this test's.
becomes_leaf() {
	alone=yes
	job 0 leaf 1 10000 -- COLL_LEVELS=flat COLL_ALPHA=2ms COLL_OVERHEAD=1us COLL_GAMMA=200us COLL_NOISE=none COLL_LINK_NOISE=none "$@"
	status=$?
	alone=
	[ $status -eq 0 ] || return 1
	show
	grep -q '^before: .*late=' "$work/out" && return 1
	grep -q '^after: .*late=' "$work/out" && return 1
	has '^leaf: .* butterfly-leaf-last:radix=[0-9]+,late=1 \(late: rank 1: [0-9]+ % of its calls by [0-9.e+]+us.*, measured before call [0-9]+\)' \
		'^# late +=  *1 +# often late, in [0-9]+ % of the calls by [0-9.]+[um]s; since call [0-9]+$'
}
ok "a rank that comes late to most of its calls becomes a leaf, whose vector is added last" \
	thrice becomes_leaf A=a
ok "... with epoll" thrice becomes_leaf COLL_ENGINE=epoll

# A rank whose messages are late, of and to it: it is named, and T or a leaf is taken, whichever is predicted to
# be better. When its links are good again neither is left.
bad_nic='link:poisson:rate=600,duration=1ms,model=occupancy'
has_bad_links() {
	job 0 links -- COLL_INJECT="$bad_nic,rank=1;$bad_nic,from=1" "$@" || return 1
	show
	grep -q '^before: .*\(late=\|:T=[1-9]\)' "$work/out" && return 1
	grep -q '^after: .*\(late=\|:T=[1-9]\|its links\)' "$work/out" && return 1
	has '^leaf: .*(late=1 |:T=[1-9]).*its links [0-9.e+]+x[0-9.e+]+us' \
		'^# late +=  *1 +# .*late messages by its links, [0-9.e+]+x[0-9.]+[um]s; since call [0-9]+$'
}
ok "a rank whose links are bad is named and answered, and not when they are good again" \
	thrice has_bad_links COLL_ENGINE=uring
ok "... with epoll" thrice has_bad_links COLL_ENGINE=epoll

# Rank 0's options hold.
given() {
	job 2000 -- COLL_INJECT="$late" COLL_LINK_NOISE=0.01x1us && ! grep -q 'measured before' "$work/out"
}
ok "noise that an option gives stays" given
given_none() {
	job 2000 -- COLL_INJECT="$late" "$1=none" && ! grep -q 'measured before\|:T=' "$work/out"
}
ok "... also that there is none of links" given_none COLL_LINK_NOISE
ok "... or of ranks" given_none COLL_NOISE
started() { job 2000 -- COLL_INJECT="$late" COLL_MEASURE=start && ! grep -q ':T=' "$work/out"; }
ok "measure=start follows no noise" started
tap_end
