#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Four nodes of four ranks: network namespaces at a switch. Every collective by one leader a node,
# by lanes and by replicas gives the right results, and the node's interface counts the fewest bytes.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/nodes.sh"

bench() {	# COLLECTIVE ALGORITHMS SIZES ITERATIONS
	job -e COLL_MEASURE=off -- "$COLL" bench "$1" --algo "$2" --size "$3" --iterations "$4" --warmup 1
}

# Bytes of measuring links would differ from run to run.
# What one call more brings to and takes from each node, in KB: "IN OUT", by the most.
each_call() {	# COLLECTIVE ALGORITHM SIZE
	few=1 many=5 way=
	for calls in $few $many; do
		before=$(for pid in $pids; do nsenter -n -t "$pid" cat /proc/net/dev; done |
			awk '$1 == "nic:" { print $2, $10 }')
		bench "$1" "$2" "$3" $calls || return 1
		after=$(for pid in $pids; do nsenter -n -t "$pid" cat /proc/net/dev; done |
			awk '$1 == "nic:" { print $2, $10 }')
		way="$way
$(printf '%s\n%s\n' "$before" "$after")"
	done
	printf '%s\n' "$way" | awk -v nodes=$nodes -v calls=$((many - few)) '
		NF == 2 {
			run = int(n / (2 * nodes)); sign = n % (2 * nodes) < nodes ? -1 : 1
			if (!run) sign = -sign
			in_[n % nodes] += sign * $1; out[n % nodes] += sign * $2; n++
		}
		END {
			for (i = 0; i < nodes; i++) {
				a = in_[i] > a ? in_[i] : a; b = out[i] > b ? out[i] : b
			}
			printf "%d %d\n", a / calls / 1024, b / calls / 1024
		}'
}

# At most IN and OUT KB, and 8 % for headers and acknowledgements; at least 95 % of IN.
carries() {	# COLLECTIVE ALGORITHM SIZE IN OUT
	kb=$(each_call "$1" "$2" "$3") || return 1
	echo "# $1 $2 of $3: in and out of a node ${kb% *} and ${kb#* } KB a call; bound $4 and $5"
	echo "$kb" | awk -v in_="$4" -v out="$5" '{
		exit !($1 <= in_ * 1.08 + 16 && $2 <= out * 1.08 + 16 && $1 >= in_ * 0.95)
	}'
}
ok "allreduce by lanes: 2 (N-1)/N n enter and leave a node" carries allreduce lanes:across=rabenseifner 2M 3072 3072
ok "bcast by lanes: n enters and leaves a node" carries bcast lanes:across=chain 2M 2048 2048
ok "allgather by lanes: each block enters a node once" carries allgather lanes 128K 1536 1536
ok "alltoall by lanes: each block crosses once" carries alltoall lanes 64K 3072 3072
ok "reduce_scatter_block by lanes: each sum enters a node once from each other" \
	carries reduce_scatter_block lanes 128K 1536 1536

for collective in barrier:leader,lanes bcast:leader,lanes reduce:leader,lanes,chain \
	allreduce:leader,lanes,replicas allgather:leader,lanes allgatherv:leader,lanes gather:leader \
	scatter:leader reduce_scatter:leader,lanes reduce_scatter_block:leader,lanes \
	alltoall:leader,lanes alltoallv:lanes scan:leader,lanes exscan:leader,lanes; do
	ok "$collective: results are right" bench "${collective%:*}" "${collective#*:}" 8,100K 2
done

explained() {
	job -e COLL_EXPLAIN=1 -- "$COLL" bench allreduce --size 8 --iterations 1 --warmup 0 &&
		grep -q "16 ranks on 4 nodes of 4.*(levels=auto)" "$dir/out"
}
ok "COLL_EXPLAIN says which levels there are, and why" explained

flat() {
	job -e COLL_EXPLAIN=1 -e COLL_LEVELS=flat -- "$COLL" bench allreduce --size 8 \
		--iterations 1 --warmup 0 && ! grep -q "nodes of" "$dir/out"
}
ok "levels=flat: there are none" flat

# Two nodes at each of two switches: rank 0 prints the costs, and what it chose for a group of so many ranks.
switches() {	# RANKS SETTING-OF-A-RANK
	job -e COLL_MEASURE=start -- sh -c "export $2; exec \"\$@\"" sh "$BUILD/tests/multi/costs" 1 "$1" &&
		grep -Eq ' switch_alpha .*below one switch.* of 2 pairs of ranks' "$dir/out" &&
		grep -Eq ' alpha .*between nodes.* of 1 pair of ranks' "$dir/out" || { sed 's/^/# /' "$dir/out"; return 1; }
}
by() {		# COST: what the group's algorithm was chosen by
	awk -v cost="$1" '
		$2 == cost { is = $4 * ($4 ~ /ms$/ ? 1e3 : $4 ~ /ns$/ ? 1e-3 : 1) }
		match($0, /by alpha [0-9.]* us/) { by = substr($0, RSTART + 9) + 0 }
		END { exit !(is > 0 && by > 0.99 * is && by < 1.01 * is) }' "$dir/out" || { sed 's/^/# /' "$dir/out"; return 1; }
}
# shellcheck disable=SC2016
by_name='COLL_SWITCH=s$((COLL_RANK / 8))'
# shellcheck disable=SC2016
by_slurm='SLURM_TOPOLOGY_ADDR=core.s$((COLL_RANK / 8)).n.$((COLL_RANK / 4)) SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node'
ok "links below one switch have costs of their own" switches 8 "$by_name"
ok "... by which a group below it chooses" by switch_alpha
ok "... and one that is at several by those between these" eval 'switches 9 "$by_name" && by alpha'
ok "Slurm says which switch a node is at" switches 8 "$by_slurm"

wrong() {
	timeout 60 "$COLL" run --hosts "$hosts" --ssh "$dir/shell" -e COLL_LEVELS=4+4 -- "$COLL" \
		bench barrier --iterations 1 >"$dir/out" 2>&1
	[ $? -ne 0 ] && grep -q "option levels: '4+4' is not the sizes of nodes" "$dir/out"
}
ok "sizes that are not those of all ranks are refused" wrong
tap_end
