#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Collectives over circuits: nodes are network namespaces, the switch is colld's `emul` (10 ms
# reconfiguration delay), a port carries 40 Mbit/s. All circuits are down at the start. Results are
# compared with the planner's prediction and the lower bound. The parameters of the model are
# measured before, separately: alpha, the latency of a message while all ranks send (a step of a
# butterfly, over the packet network); overhead, the time of each further message of a rank; beta,
# of 1 MiB over one circuit; delta, the manager's reconfiguration delay for schedules, while all
# nodes request all their ports at once. For each collective and k: naive (a circuit for each
# message, one port), paper 5's (k ports in turns), and the planner's choice. CSV and SVG go to
# $BUILD/figures.
#
# The table of docs/results/circuits.md is printed last.
#
# usage: BUILD=build tests/bench/circuits.sh [--quick] [--fresh] [COLLECTIVE ...]
#	--quick		k = 2 only, fewer sizes and runs
#	--fresh		measures everything again; else existing results are kept
#	NODES=16 PORTS="2 3 4" ITERATIONS=5 DELTA=10 (ms) RATE=40 (Mbit/s) MTU=4000 VECTORS="1 64K 1M"
#	BLOCKS="1 4K 64K" SECONDS_MAX=900: the rest is left for the next time
if [ -z "$CIRCUITS_INSIDE" ]; then
	# The namespaces take everything in them with them.
	CIRCUITS_INSIDE=yes exec unshare -mn --propagation private "$0" "$@"
fi
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${BUILD:-build}" && pwd)
out=$build/figures
csv=$out/circuits_run${DELTA:+_$DELTA}.csv
nodes=${NODES:-16} iterations=${ITERATIONS:-5} ports=${PORTS:-2 3 4} delay=${DELTA:-10} rate=${RATE:-40} mtu=${MTU:-4000}
vectors="${VECTORS:-1 64K 1M}" blocks="${BLOCKS:-1 4K 64K}"
began=$(date +%s)
fresh=
while [ $# -gt 0 ]; do
	case $1 in
	--quick) iterations=2 ports=2 vectors="1 64K" blocks="1 4K" ;;
	--fresh) fresh=yes ;;
	-*) echo "circuits.sh: no option '$1'; valid: --quick, --fresh" >&2; exit 2 ;;
	*) break ;;
	esac
	shift
done
mkdir -p "$out"
# Results with other parameters are dropped.
of="$nodes nodes, $iterations times, $delay ms, $rate Mbit/s, MTU $mtu"
if [ "$fresh" ] || [ "$(cat "$csv.of" 2>/dev/null)" != "$of" ]; then
	rm -f "$csv"
fi
echo "$of" >"$csv.of"
[ -s "$csv" ] || echo "collective,ports,variant,algorithm,bytes,measured_ms,fastest_ms,model_ms,bound_ms,delta_ms,set_ups" >"$csv"

# ---- nodes ---------------------------------------------------------------------

work=$(mktemp -d)
colld= jobs=
# A namespace's devices are removed some time after it; deleting their other ends removes them at once.
no_nodes() {
	ip -o link show type veth | sed 's/^[0-9]*: //; s/[@:].*//' | xargs -rn 1 ip link del || true
	for i in $(seq 0 $((nodes - 1))); do
		ip netns del "n$i" 2>/dev/null || true
	done
}

finish() {
	# shellcheck disable=SC2086
	kill $jobs $colld 2>/dev/null || true
	no_nodes
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
mount -t tmpfs none /run
mkdir -p /run/netns
ip link set lo up
ip link add packets mtu "$mtu" type bridge
ip link set packets up

# Beside the circuits there is a packet network for the rendezvous, barriers and late ACKs. Its frames
# are as long: a connection begins its next message over a circuit with the segments that it used there.
make_node() {	# NUMBER PORTS
	ip netns add "n$1"
	ip -n "n$1" link set lo up
	ip link add "p$1" mtu "$mtu" type veth peer name packets mtu "$mtu" netns "n$1"
	ip link set "p$1" master packets up
	ip -n "n$1" addr add "10.78.0.$(($1 + 1))/24" dev packets
	ip -n "n$1" link set packets up
	# A circuit has the same rate when it is set up again: TCP must not restart slowly after each
	# reconfiguration, nor use metrics of the previous circuit.
	ip netns exec "n$1" sysctl -qw net.ipv4.tcp_slow_start_after_idle=0 \
		net.ipv4.tcp_no_metrics_save=1
	ip netns exec "n$1" sysctl -qw net.ipv4.tcp_rto_min_us=5000 2>/dev/null || true
	for port in $(seq 0 $(($2 - 1))); do
		ip link add "sw$(($1 * $2 + port + 1))" mtu "$mtu" type veth peer name "port$port" mtu "$mtu" netns "n$1"
		ip -n "n$1" link set "port$port" arp off address 02:00:00:00:00:01 up
		tc -n "n$1" qdisc add dev "port$port" root tbf rate ${rate}mbit burst $((mtu + 64)) limit 4m
	done
}

network() {	# PORTS
	no_nodes
	rm -f "$work/socket"
	{
		echo "socket $work/socket"
		echo "switch emul delta=${delay}ms min=${delay}ms max=${delay}ms hold=1s" \
			"netns=/run/netns/%s address=10.78.0.%u"
		echo "keep 0s"
		echo "reconcile 60s"
		seq 0 $((nodes - 1)) | awk -v k="$1" '{
			for (i = 1; i <= k; i++)
				list = list (i > 1 ? "," : "") $1 * k + i
			print "node n" $1, list
			list = "" }'
	} >"$work/circuits"
	for i in $(seq 0 $((nodes - 1))); do
		make_node "$i" "$1"
	done
	"$build/colld" --circuits "$work/circuits" --metrics 0 --state "$work/state" \
		2>>"$work/colld.log" &
	colld=$!
	for _ in $(seq 1 100); do
		"$build/coll" circuit show --socket "$work/socket" >/dev/null 2>&1 && return
		kill -0 $colld
		sleep 0.1
	done
	return 1
}
no_network() {
	kill $colld
	wait $colld || true
	colld=
}
delta_ms() {
	"$build/coll" circuit show --json --socket "$work/socket" | jq "(.switch.${1:-delay}_ns) / 1e6"
}

# ---- jobs -----------------------------------------------------------------------

port=7000 secret=$(openssl rand -hex 32)
job() {	# RANKS PROGRAM...: what rank 0 says
	ranks=$1
	shift
	port=$((port + 1))
	jobs=
	for rank in $(seq 1 $((ranks - 1))) 0; do
		COLL_NODE=n$rank COLL_RANK=$rank COLL_RANKS=$ranks COLL_JOB=bench$port \
			COLL_STORE=10.78.0.1:$port COLL_SECRET=$secret \
			COLL_ADDRESS=10.78.0.$((rank + 1)) COLL_CIRCUITS=$work/socket \
			COLL_CIRCUIT_PORTS=off COLL_DEADLINE=40s COLL_CONGESTION=cubic \
			COLL_SPIN=0 \
			ip netns exec "n$rank" "$@" >"$work/out.$rank" 2>"$work/err.$rank" &
		jobs="$jobs $!"
	done
	for pid in $jobs; do
		wait "$pid" || { tail -3 "$work/err.0" >&2; return 1; }
	done
	jobs=
}

median_us() {
	awk -F, 'NR == 2 { printf "%.1f\n", $(NF - 5) }' "$work/out.0"
}
# A step of all ranks: the time of a message while all ranks send, on this machine's CPUs.
alpha() {
	job "$nodes" "$build/coll" bench allreduce --algo butterfly --size 8 --iterations 200 --csv
	median_us | awk -v p="$nodes" '{ printf "%.1f\n", $1 / log(p) * log(2) }'
}
# Of 2 p - 3 further messages each (algo/alltoall/linear.c); at most half the time of one.
overhead() {
	job "$nodes" "$build/coll" bench alltoall --algo linear --size 1 --type uint8 --iterations 200 --csv
	median_us | awk -v p="$nodes" -v alpha="$alpha" '{
		o = ($1 - alpha) / (2 * p - 3)
		printf "%.1f\n", o < alpha / 2 ? o : alpha / 2 }'
}
beta() {	# ns per byte, over a circuit that is up
	"$build/coll" circuit request n0 n1 --wait 60s --socket "$work/socket"
	job 2 "$build/coll" bench bcast --algo linear --size 1M --iterations 5 --no-check --csv
	median_us | awk '{ printf "%.1f\n", $1 * 1e3 / 1048576 }'
	"$build/coll" circuit release n0 n1 --socket "$work/socket" >/dev/null
}
# All circuits are down before each; then all circuits of all nodes together.
set_ups() {	# PORTS; colld's set-up times are of the latest 64
	job "$nodes" "$build/coll" bench allreduce --algo "cayley:ports=$1" --size 1 --type uint8 \
		--iterations 10 --no-check --csv
}

bytes_of() {
	case $1 in *K) echo $((${1%K} * 1024)) ;; *M) echo $((${1%M} * 1048576)) ;; *) echo "$1" ;; esac
}

left=0
missing() {	# COLLECTIVE PORTS VARIANT SIZES: those that are not in the CSV, with commas
	for size in $4; do
		awk -F, -v what="$1" -v k="$2" -v variant="$3" -v bytes="$(bytes_of "$size")" '
			$1 == what && $2 == k && $3 == variant && $5 == bytes { found = 1 }
			END { exit !found }' "$csv" || printf '%s ' "$size"
	done | sed 's/ $//; s/ /,/g'
}

# A line of the CSV for each size: the medians, and the predictions in rank 0's explanation.
measure() {	# COLLECTIVE PORTS VARIANT ALGORITHM SIZES
	sizes_left=$(missing "$1" "$2" "$3" "$5")
	[ -n "$sizes_left" ] || return 0
	if [ $(($(date +%s) - began)) -ge "${SECONDS_MAX:-900}" ]; then
		left=$((left + 1))
		return
	fi
	COLL_EXPLAIN=1 COLL_ALPHA=${alpha}us COLL_OVERHEAD=${overhead}us COLL_BETA=${beta}ns COLL_DELTA=${delta}ms \
		job "$nodes" "$build/coll" bench "$1" --algo "$4" --size "$sizes_left" \
		--type uint8 --iterations "$iterations" --warmup 1 --no-check --csv || return 0
	awk -v what="$1" -v k="$2" -v variant="$3" -v delta="$delta" \
		-v sizes="$(for size in $(echo "$sizes_left" | tr , ' '); do bytes_of "$size"; done |
			tr '\n' ' ')" '
	FNR == NR && index($0, "coll: " what " of") && /, predicted [0-9]/ {
		said = $0; sub(/ ranks: .*/, "", said)
		if (seen[said]++)
			next
		n++
		chosen[n] = $0; sub(/.* ranks: /, "", chosen[n]); sub(/ \(.*/, "", chosen[n])
		gsub(/,/, " ", chosen[n])
		match($0, /predicted [0-9.e+]+/); model[n] = substr($0, RSTART + 10, RLENGTH - 10)
		match($0, /at least [0-9.e+]+/); bound[n] = substr($0, RSTART + 9, RLENGTH - 9)
		match($0, /ms: [0-9]+ set-ups/); ups[n] = substr($0, RSTART + 4, RLENGTH - 12)
	}
	FNR != NR && FNR > 1 {
		split(sizes, bytes, " "); i = FNR - 1
		sub(/.*",/, ""); split($0, v, ",")
		printf "%s,%d,%s,%s,%d,%.2f,%.2f,%.2f,%.2f,%.2f,%d\n", what, k, variant, chosen[i],
			bytes[i], v[4] / 1e3, v[9] / 1e3, model[i], bound[i], delta, ups[i]
	}' "$work/err.0" "$work/out.0" | tee -a "$csv"
}

# Nodes with one port cannot set up the next circuit while the last one is in use.
ports_are() {	# PORTS
	for i in $(seq 0 $((nodes - 1))); do
		"$build/coll" circuit ports "n$i" "$1" --socket "$work/socket" >/dev/null
	done
}

paper_of() {	# the algorithm of paper 5, or the nearest to it
	case $1 in
	bcast | reduce) echo binomial ;;
	gather | scatter | alltoall) echo linear ;;
	allgather) echo ring ;;
	allreduce) echo butterfly ;;
	reduce_scatter_block) echo halving ;;
	scan) echo doubling ;;
	esac
}

for k in $ports; do
	network "$k"
	alpha=$(alpha)
	overhead=$(overhead)
	beta=$(beta)
	set_ups "$k"
	delta=$(delta_ms delay_p90)
	echo "# k = $k: alpha $alpha us, overhead $overhead us, beta $beta ns, reconfiguration delay $delta ms; medians: queue $(delta_ms queue) + switch $(delta_ms switch) + lock $(delta_ms lock) + notice $(delta_ms notify)" | tee -a "$out/circuits_floor.txt"
	for what in ${*:-bcast allgather allreduce alltoall scatter gather reduce reduce_scatter_block scan}; do
		case $what in
		bcast | reduce | allreduce | scan) sizes=$vectors ;;
		*) sizes=$blocks ;;
		esac
		algo=$(paper_of "$what")
		if [ "$k" = "${ports%% *}" ] && [ -n "$(missing "$what" 1 naive "$sizes")" ]; then
			ports_are 1
			measure "$what" 1 naive "$algo:ports=1,ahead=0" "$sizes"
			ports_are "$k"
		fi
		measure "$what" "$k" paper "$algo:ports=$k,ahead=1" "$sizes"
		measure "$what" "$k" best "auto:ports=$k" "$sizes"
	done
	no_network
done
[ "$left" = 0 ] || echo "circuits.sh: $left rows are left for the next time" >&2
sh "$here/circuits_plot.sh" "$out" "$csv"
sh "$here/circuits_table.sh" "$csv"
