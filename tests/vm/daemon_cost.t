#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
#	tests/vm/daemon_cost.t [-l]
#
# What colld takes where coll.ko moves the tasks, beside many processes and 1000 rules. Time is
# what was executed, a nanosecond an instruction, so it does not depend on this machine; -l: 10^4 processes
# for a minute, in place of 1000 for ten seconds.
here=$(dirname "$0")
build=${BUILD:-build}
processes=1000 seconds=10 settle=6 memory=1024
[ "${1:-}" != -l ] || processes=10000 seconds=60 settle=10 memory=6144
exec "$here/run" -i -m $memory -t 1800 -s 1500 -p "$build/tests/load/daemon_cost" -p "$build/colld" -p /bin/sh \
	-p "$here/daemon_cost_inside.sh" 6.12 "daemon_cost_inside.sh $processes $seconds $settle"
