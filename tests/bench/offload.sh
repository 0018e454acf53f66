#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	tests/bench/offload.sh [6.1|6.12] [PART]...
#
# How much of a collective is hidden without a call in between, where coll.ko can be
# loaded: in the emulated machine, each CPU of it a thread. An emulated CPU is some ten times
# slower than a real one, so links are as much slower, that the two have the usual
# proportion. Parts, of a minute each on an idle machine of two cores:
#
#	own	call, thread and kernel, each with a CPU of its own; 64 KB
#	sizes	the kernel at 512 KB and 4 MB
#	noise	as own, with 2 ms of noise every 20 ms on the CPU that computes
#	share	a thread on the rank's CPU, and the kernel's on another one: what each takes
#	module	runs beside the module's own noise on the application's CPU
cd "$(dirname "$0")/../.." || exit 1
kernel=${1:-6.12}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- own sizes noise share module
build=${BUILD:-build}
overlap="coll bench overlap --rounds 1 --iterations"
iterations=${ITERATIONS:-15}

measure() {	# CPUS TEST...
	cpus=$1
	shift
	tests/vm/run -T -c "$cpus" -p "$build/coll" -t 300 -s 250 "$kernel" "$@" |
		sed -n 's/^# \(coll\|offload_noise_test\): //p; /^not ok.*\(clean\|unloads\|machine\)/p'
}

for part; do
	echo "== $part"
	case $part in
	own) measure 2 "$overlap $iterations --place own --modes call,thread,kernel --pace 2M --size 64K" ;;
	sizes) measure 2 "$overlap $iterations --place own --modes kernel --pace 8M --size 512K" \
		"$overlap 5 --place own --modes kernel --pace 16M --size 4M" ;;
	noise) measure 2 "$overlap $iterations --place own --modes call,thread,kernel --pace 2M --size 64K \
--inject os:periodic:period=20ms,duration=2ms" ;;
	share) measure 3 "$overlap $iterations --place kernel --modes thread,kernel --pace 2M --size 64K" ;;
	module) measure 2 offload_noise_test ;;
	*) echo "no part '$part'" >&2; exit 2 ;;
	esac
done
