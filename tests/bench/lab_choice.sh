#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The cost of the choice of algorithms over links: nodes of several ranks, joined by a network with a
# delay and a rate (coll lab), each collective with the chosen algorithm and with every other one, in turn
# in the same run (choice.sh). Without any option, unless the environment has COLL_MEASURE and the like.
#
#	tests/bench/lab_choice.sh [-v] [-l DELAY/RATE,..] [-c COLLECTIVE,..] [-n NODES] [-e RANKS] [-s SECONDS] [-t SECONDS] [-a]
#
#	-v	in the emulated machine (tests/vm/run -i), where time is what was executed, a nanosecond an instruction,
#		with the kernel's netem
#	-l	links, 0.5ms/1G for example: the one-way delay, and bit/s of each node; lan/5G: no delay but that of
#		this kernel's bridge, and no forwarder
#	-n	4 nodes: 1+1+1+1 (default); two clusters of 2 nodes: 2+2, the links being between these
#	-e	ranks of each node (4)
#	-s	seconds of each final (0.5): four calls of each algorithm at least
#	-t	seconds in all (570): what is not measured by then is left out, and named
#	-a	all cells in the table, not only those over the limit
#
# Prints the cells where the chosen algorithm takes over 1.1 of the best one's time, the share of the
# others for each link, and what was left out. Every frame between nodes goes through a forwarder in
# user space, or through netem, but those of "lan": so first there is what that carries, and links beyond are slower than
# their name. All nodes share this machine's cores: at 0.05 ms these are what is measured. They also share its clock, by which
# all ranks start together: leaving a barrier, they would start as far apart as the slow links make them.
set -u
BUILD=${BUILD:-build}
links=lan/100M,lan/1G,lan/5G,1ms/100M,1ms/1G,10ms/100M,10ms/1G
collectives=allreduce,bcast,barrier,allgather,alltoall,reduce,reduce_scatter_block,gather,scatter,scan
nodes=1+1+1+1 each=4 seconds=0.5 total=570 all= machine=
while getopts vl:c:n:e:s:t:a option; do
	case $option in
	v) machine=vm ;;
	l) links=$OPTARG ;;
	c) collectives=$OPTARG ;;
	n) nodes=$OPTARG ;;
	e) each=$OPTARG ;;
	s) seconds=$OPTARG ;;
	t) total=$OPTARG ;;
	a) all=all ;;
	*) sed -n 's/^#	tests/usage: tests/p' "$0" >&2 && exit 2 ;;
	esac
done
out=$BUILD/bench
began=$(date +%s)
. "$(dirname "$0")/choice.sh"

for link in $(echo "$links" | tr , ' '); do
	case $link in
	?*/?*) ;;
	*) echo "lab_choice.sh: -l $link: a link is DELAY/RATE, 0.5ms/1G for example" >&2 && exit 2 ;;
	esac
done

# One cluster of several nodes would have no link with a delay.
case $nodes in
*+*) ;;
*) echo "lab_choice.sh: -n $nodes: valid are two clusters or more: 1+1+1+1, 2+2" >&2 && exit 2 ;;
esac
# Nodes that are alone in their clusters are no clusters to the job.
case $nodes in
*[2-9]* | *1[0-9]*) clusters= without="debruijn|cayley" ;;
*)
	clusters=--no-clusters
	without="debruijn|cayley|farfirst|twotier|gateways|turns|rendezvous|.*-extended" ;;
esac

# Here, or in the emulated machine: there it prints what the program does as TAP's comments.
lab() {	# SECONDS OPTION ... -- ARGUMENT ...: of `coll lab`, and of `coll` in it
	lab_options= lab_seconds=$1
	shift
	while [ "$1" != -- ]; do
		lab_options="$lab_options $1"
		shift
	done
	shift
	if [ -z "$machine" ]; then
		# shellcheck disable=SC2086
		COLL_EXPLAIN=1 COLL_DEADLINE=60s timeout -k 5 "$((lab_seconds + 10))" "$BUILD/coll" lab $lab_options \
			-t "$lab_seconds" -- "$BUILD/coll" "$@"
		return
	fi
	tests/vm/lab_run -i -m 2048 -t 600 -s 580 -a "COLL_EXPLAIN=1 COLL_DEADLINE=60s COLL_STORE_PROGRAM=/bin/coll-store \
$(env | grep '^COLL_[A-Z_]*=[^ ]*$' | tr '\n' ' ')" 6.12 "coll lab $lab_options --by netem -t $lab_seconds -- coll $*" >"$out/lab_choice.tap"
	# The lines of the table, and what the library explains.
	awk '!sub(/^# coll: /, "") { next }
		/^collective,/ || /^[a-z_]+,[0-9]+,/ { print; next }
		{ print >"/dev/stderr" }' "$out/lab_choice.tap"
	! grep -E '^1[.][.]0|^not ok' "$out/lab_choice.tap" | grep -v 'gave a result$' >&2
}

# Queues as those of Linux before a NIC and of a switch: they hold a few messages of each rank.
choice_bench() {	# COLLECTIVE OPTION ...
	set -- --each "$each" --nic "${link#*/}" --nic-queue 1M --port-queue 1M -- bench "$@" --warmup 2 --start clock
	case $link in
	# shellcheck disable=SC2004
	lan/*) lab 90 -c "$(($nodes))" --no-clusters "$@" ;;
	# shellcheck disable=SC2086
	*) lab 90 -c "$nodes" $clusters --delay "${link%/*}" --wan "${link#*/}" --queue 1M "$@" ;;
	esac
}

# Those that are not for clusters refuse these calls.
without_of() {	# COLLECTIVE
	case $clusters/$1 in
	/barrier) echo "$without|lanes" ;;
	/alltoall) echo "$without|lanes|leader" ;;
	*) echo "$without" ;;
	esac
}

# Vectors, or blocks of each rank: few calls of the slowest algorithm at 100 Mbit/s take seconds.
sizes_of() {	# COLLECTIVE
	case $1 in
	bcast | reduce | allreduce | scan) echo 8,16K,256K ;;
	*) echo 8,1K,32K ;;
	esac
}

# What one connection gets without a limit, and the time of 8 bytes.
carries() {
	lab 50 -c 1+1 --no-clusters --delay 0.05ms -- bench bcast --algo linear --size 8,4M --iterations 12 --no-check \
		--csv 2>"$out/lab_choice.err" |
		awk -F, -v by="${machine:+netem}" 'NR == 2 { first = $10 } NR == 3 {
			printf "%s carries %.2f Gbit/s of one connection; over a link of 0.05 ms, 8 bytes " \
				"take %.2f ms\n", by ? by : "the forwarder", 4 * 1.048576 * 8e3 / $10, first / 1e3
			found = 1
		} END { exit !found }'
}

mkdir -p "$out"
carries || { echo "lab_choice.sh: coll lab does not run here: $(head -3 "$out/lab_choice.err")" >&2; exit 1; }
echo
choice_begin lab_choice
left=
for link in $(echo "$links" | tr , ' '); do
	for collective in $(echo "$collectives" | tr , ' '); do
		passed=$(($(date +%s) - began))
		if [ $passed -ge "$total" ]; then
			left="$left${left:+, }$link $collective"
			continue
		fi
		[ -t 2 ] && printf '\r%-60s' "$passed of $total s: $link $collective" >&2
		choice_measure "$link" "$collective" "$(sizes_of "$collective")" 3 "$seconds" \
			"$(without_of "$collective")"
	done
done
[ -t 2 ] && printf '\r%60s\r' "" >&2
choice_report $all
code=$?
[ -z "$left" ] || echo "left out after $total s: $left"
exit $code
