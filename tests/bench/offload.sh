#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	tests/bench/offload.sh [6.1|6.12] [PART]...
#
# Overlap of a collective without calls in between, with coll.ko, in the emulated machine whose
# clock counts instructions (tests/vm/run -i), so that the load of this machine has no influence.
# Links carry 10 MB/s, for 64 KB 3. Parts, of a minute or two each:
#
#	own	call, thread and kernel, each with a CPU of its own; an allreduce of 64 KB by a ring:
#		an alltoall of two ranks that fits into the sockets needs no progress
#	sizes	alltoall of 512 KB by call and the kernel, of 4 MB by the kernel
#	noise	as own, with 2 ms of noise every 20 ms on the CPU that computes
#	share	CPU time of a thread on the rank's CPU, and of the kernel's on another one
#	cost	times of starts, and of a small run
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-6.12}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- own sizes noise share cost
build=${BUILD:-build}
overlap="coll bench overlap --rounds 1 --pace 10M"
small="--collective allreduce --algo ring --size 64K --iterations 4 --pace 3M"

measure() {	# CPUS TEST...
	cpus=$1
	shift
	tests/vm/run -i -c "$cpus" -p "$build/coll" -t 900 -s 800 "$kernel" "$@" |
		sed -n 's/^# \(coll\|offload_cost_test\): //p; s/^ok.*offload_cost_test: \([0-9].*\)/\1/p; /^not ok.*\(clean\|unloads\|machine\)/p'
}

for part; do
	echo "== $part"
	case $part in
	own) measure 2 "$overlap $small --place own --modes call,thread,kernel" ;;
	sizes) measure 2 "$overlap --iterations 1 --place own --modes call,kernel --size 512K --rows 25000" \
		"$overlap --iterations 1 --place own --modes kernel --size 4M --rows 200000" ;;
	noise) measure 2 "$overlap $small --place own --modes call,thread,kernel \
--inject os:periodic:period=20ms,duration=2ms" ;;
	share) measure 3 "$overlap $small --place kernel --modes thread,kernel" ;;
	cost) measure 2 offload_cost_test ;;
	*) echo "no part '$part'" >&2; exit 2 ;;
	esac
done
