#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# peers.sh beside a neighbour: on each core a process that spins, as somebody else's job does on a
# shared node.
#
#	tests/bench/neighbour.sh [-o] ARGUMENTS OF peers.sh
#
# -o: the neighbour is in another group of the scheduler's, which a session of its own makes where
# the kernel groups by session (/proc/sys/kernel/sched_autogroup_enabled is 1), else in this one.
set -u
session=
if [ "${1:-}" = -o ]; then
	session=setsid
	shift
fi
spinning=
trap 'kill $spinning' EXIT
trap 'exit 1' INT TERM
core=0
while [ $core -lt "$(nproc)" ]; do
	# $session is a word or none.
	$session taskset -c $core sh -c 'while :; do :; done' &
	spinning="$spinning $!"
	core=$((core + 1))
done
"${0%/*}/peers.sh" "$@"
