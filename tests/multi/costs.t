#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Costs of messages: measured at the start, written by coll tune, read from a file. All ranks have
# the same, and the choice of algorithms follows them.
. "${0%/*}/../lib/tap.sh"
. "${0%/*}/../lib/lines.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export COLL_DEADLINE=30s

# job RANKS COUNT NAME=VALUE ...: $work/out has the costs and the choice; with `first`, of so many ranks.
first=
job() {
	ranks=$1 count=$2
	shift 2
	env "$@" timeout 100 "$COLL" run -n "$ranks" -- "$BUILD/tests/multi/costs" "$count" $first \
		>"$work/all" 2>&1 || { sed 's/^/# /' "$work/all"; return 1; }
	sed 's/^\[0\] //' "$work/all" >"$work/out"
}
hasnt() {
	! grep -E -- "$1" "$work/out" | sed 's/^/# /' | grep .
}
number='= [0-9.]+[num]s'

nothing() { job 2 1 && hasnt ' = .*# same|measured'; }
ok "by default nothing is measured" nothing

# Where a message waits milliseconds for a core, there is no time for long ones.
bytes_measured() {	# FILE
	grep -q '^node_alpha *= [0-9.]*ms' "$1" || grep -Eq "^node_beta +$number" "$1"
}
# On a busy machine long messages need more time than there is by default.
node() {
	for time in 20ms 200ms 2s; do
		job 2 1 COLL_MEASURE=start COLL_MEASURE_TIME=$time "$@" || return 1
		bytes_measured "$work/out" && break
	done
	bytes_measured "$work/out" && has \
		"^node_alpha +$number +# same node, half a round trip: [0-9]+ samples of 1 pair of ranks, 0 and 1" \
		"^node_overhead +$number" "^gamma +$number +# .*the median of the ranks" \
		'by alpha .* us, beta .* ns, gamma .* ns \(measured at the start\)' &&
		hasnt '^(alpha|domain_|wan_)'
}
ok "a node's costs are measured, and are the same on all ranks" node
ok "... with TCP and epoll" node COLL_MEMORY=off COLL_ENGINE=epoll
ok "... with a progress thread" node COLL_PROGRESS=thread

# Three nodes, the first with two domains; each of them a cluster.
classes() {
	job 6 1 COLL_MEASURE=start COLL_LEVELS=4+1+1/2+2+1+1 COLL_CLUSTERS=5+1 &&
		has "^domain_alpha +$number .*2 pairs" "^node_alpha +$number .*1 pair" \
			"^alpha +$number .*1 pair" "^wan_alpha +$number .*1 pair"
}
ok "each class of links is measured by pairs of its own" classes

given() {
	job 2 1 COLL_MEASURE=start COLL_NODE_BETA=7ns COLL_GAMMA=3ns &&
		has '^node_beta += 7ns .*: given or assumed' "^node_alpha +$number .*samples" '^gamma += 3ns .*given'
}
ok "what an option gives is not replaced" given

# Noise of one rank's links: the medians leave it out, and the numbers are still those of all.
noisy() { job 4 1 COLL_MEASURE=start COLL_INJECT='link:poisson:rate=500,duration=200us,rank=1'; }
ok "with noise on one rank's links all agree" noisy

# Each survivor fails to open, and its partner says who it was.
lost() {	# RANK: killed before it has measured; the deadline is 30 s
	COLL_MEASURE=start COLL_INJECT="kill:rank=$1,after=2" timeout 20 "$COLL" run -k -n 3 -- \
		"$BUILD/tests/multi/costs" 1 >"$work/out" 2>&1
	[ $? -ne 124 ] && [ "$(grep -c 'coll_open: .*costs of messages cannot be measured' "$work/out")" = 2 ] &&
		has "measured: a rank was lost: rank $1: it failed while its links were measured"
}
ok "a rank dies meanwhile: no other waits" lost 1
ok "... the last rank" lost 2

# ---- the choice ---------------------------------------------------------------

algorithm() {	# of the allreduce
	sed -n 's/^allreduce .*: \([a-z-]*\)[: ].*(least.*/\1/p' "$work/out"
}
few_bytes() {
	case $(algorithm) in rabenseifner | ring) ;; *) sed 's/^/# /' "$work/out"; return 1 ;; esac
}
few_messages() {
	case $(algorithm) in
	butterfly | reduce-bcast | linear | one-shot) ;;
	*) sed 's/^/# /' "$work/out"; return 1 ;;
	esac
}
# Where bytes are costly, few of them are sent, unless each message takes long.
costly_bytes() { job 4 1024 COLL_MEASURE=start COLL_NODE_BETA=1us COLL_NODE_BYTE_GAP=1us "$@"; }
# Two kinds of events: messages that one lets go, all at once, meet the other one. In the pause between those of one
# kind a whole measurement might fit.
slow='link:periodic:period=32ms,duration=30ms,model=occupancy;link:periodic:period=21ms,duration=19.9ms,model=occupancy'
slow_links() {
	costly_bytes && few_bytes || return 1
	costly_bytes COLL_INJECT="$slow" || return 1
	ms=$(sed -n 's/^node_alpha *= \([0-9]*\)[0-9.]*ms .*/\1/p' "$work/out")
	echo "# node_alpha ${ms:-0} ms, $(algorithm)"
	[ "${ms:-0}" -ge 4 ] && few_messages
}
ok "slow links are measured, and all ranks choose fewer messages" slow_links

# ---- the file -------------------------------------------------------------------

written() {
	"$COLL" tune -n 2 --time 1 -o "$work/costs" >"$work/out" 2>&1 &&
		cp "$work/costs" "$work/out" && has '^# coll tune: 2 ranks' "^node_alpha +$number" "^gamma" &&
		bytes_measured "$work/costs"
}
ok "coll tune writes a file" written
ok "... and leaves nothing else" test "$(ls "$work")" = 'all
costs
out'
read_back() {
	job 2 1 COLL_COSTS="$work/costs" && has "by alpha .* \\($work/costs\\)" 'node_alpha .*: given or assumed' &&
		is_same
}
is_same() {
	[ "$(sed -n 's/^node_alpha *= \([^ ]*\).*/\1/p' "$work/costs")" = \
		"$(sed -n 's/^node_alpha *= \([^ ]*\).*/\1/p' "$work/out")" ]
}
ok "... that a job reads" read_back
ok "... also as COLL_CONFIG" job 2 1 COLL_CONFIG="$work/costs"
tune_json() {
	"$COLL" tune -n 2 --time 0.05 --json |
		jq -e '.costs | map(select(.name == "node_alpha" and .value > 1e-8 and .value < 1)) | length == 1'
}
ok "coll tune --json" silent eval 'tune_json >/dev/null'

costs() {	# LINE ...: a file of them
	printf '%s\n' "$@" >"$work/file"
}
costs 'node_alpha = 3us' 'node_overhead = 2us' 'node_beta = 1ns' 'node_byte_gap = 0.5ns'
nothing_new() { job 2 1 COLL_COSTS="$work/file" COLL_MEASURE=start && hasnt 'samples' && has 'alpha 3 us'; }
ok "what the file says is not measured again" nothing_new
costs 'node_alpha = 3us' 'node_beta = 1ns'
ok "... if it has latency and byte time" nothing_new
costs 'node_alpha = 3us'
rest_new() { job 2 1 COLL_COSTS="$work/file" COLL_MEASURE=start && has 'alpha 3 us' "^node_beta +$number.*samples"; }
ok "... with the latency alone the rest is measured" rest_new
costs 'alpha = 1ms' 'node_alpha = 1us # of one node' 'node_beta = 1us'
node_first() { job 2 1 COLL_COSTS="$work/file" && has 'by alpha 1 us, beta 1e\+03 ns'; }
ok "in one node the node's costs count" node_first
part_of() {	# RANKS ALPHA: which say what counts for a group of these
	first=$1
	job 6 1 COLL_COSTS="$work/file" COLL_LEVELS=4+2/2+2+2 COLL_DOMAIN_ALPHA=0.5us && has "by alpha $2 us"
	status=$?
	first=
	return $status
}
# Long messages: what costs a byte between nodes, where each is costly, is none inside. Nothing is published: that
# would have linear send as few.
chooses_inside() {
	first=4
	job 6 4096 COLL_MEMORY=copy COLL_LEVELS=4+2 COLL_ALPHA=1s COLL_BETA=0.001ns COLL_NODE_ALPHA=1ns COLL_NODE_OVERHEAD=1ns \
		COLL_NODE_BETA=1us COLL_NODE_BYTE_GAP=1us && has '^allreduce .* 4 ranks: (rabenseifner|ring)'
	status=$?
	first=
	return $status
}
ok "for a group in one of several nodes, too" part_of 4 1
ok "... and choose its algorithm" chooses_inside
ok "... those of a domain, in one of several domains" part_of 2 0.5
ok "for a group of several nodes those between nodes do" part_of 5 '1e\+03'
option_first() { job 2 1 COLL_COSTS="$work/file" COLL_ALPHA=5us && has 'by alpha 5 us'; }
ok "an option counts before the file" option_first
ok "the file changes the choice: costly bytes" eval 'job 4 1024 COLL_COSTS="$work/file" && few_bytes'
costs 'node_alpha = 1ms' 'node_overhead = 1ms' 'node_beta = 0.001ns'
ok "... costly messages" eval 'job 4 1024 COLL_COSTS="$work/file" && few_messages'

# Rank 0's file counts; the others need none.
only_first() {
	cat >"$work/only" <<-END
		[ "\$COLL_RANK" = 0 ] || export COLL_COSTS=/nonexistent
		exec "$BUILD/tests/multi/costs" 1
	END
	env COLL_COSTS="$work/file" timeout 100 "$COLL" run -n 3 -- sh "$work/only" >"$work/out" 2>&1 &&
		has 'by alpha 1e\+03 us'
}
ok "the file is read on rank 0 alone" only_first

refuses() {	# PATTERN: of each rank, at once
	! COLL_COSTS=$work/file timeout 20 "$COLL" run -k -n 2 -- "$BUILD/tests/multi/costs" 1 \
		>"$work/out" 2>&1 && [ "$(grep -Ec -- "$1" "$work/out")" = 2 ] ||
		{ sed 's/^/# /' "$work/out"; return 1; }
}
costs 'alpha = 1us' 'spin = 1us'
ok "another option in the file is refused, on all ranks" refuses "file:2: 'spin' is no cost; valid: alpha"
costs 'alpha = fast'
ok "... a bad value" refuses "file:1: option alpha: 'fast' is not a duration"
costs 'beta = 1ns' 'alpha = 3 us'
ok "... a blank before the unit, which would be left out" refuses "file:2: option alpha: '3 us' is not a duration"
costs 'alpha'
ok "... no value" refuses 'file:1: not key = value'
rm "$work/file"
ok "... a file that is not there" refuses 'option costs: cannot read .*: No such file'
mkdir "$work/file"
ok "... a folder" refuses 'option costs: cannot read .*: Is a directory'
rmdir "$work/file"
of_windows() {
	printf 'alpha = 3us\t# as measured\r\nbeta=1ns \r\n' >"$work/file"
	job 2 1 COLL_COSTS="$work/file" && has 'by alpha 3 us, beta 1 ns'
}
ok "blanks around a value and a carriage return are none of it" of_windows
rm "$work/file"

ok "measure=often is refused" exits 2 env COLL_MEASURE=often "$BUILD/tests/multi/costs" 1
ok "... with what is valid" grep -q "'often' is not auto, off, start or always" "$work/out" "$work/err"
ok "coll tune: a file that cannot be written" exits 1 "$COLL" tune -n 2 --time 0.02 -o /nonexistent/file
ok "... is named" grep -q "cannot write /nonexistent/file" "$work/err"
ok "coll tune -n 1: one rank has no link" exits 2 "$COLL" tune -n 1

tap_end
