#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll lab with the kernel's netem, which only the test machine has.
here=$(dirname "$0")
build=${BUILD:-build}
exec "$here/run" -p "$build/coll" -p "$build/libexec/coll/coll-store" -p "$build/tests/multi/concurrent_collectives" -p /bin/sh -p "$(command -v ip)" \
	-p "$(command -v tc)" -k llc -k stp -k bridge -k veth -k sch_tbf -k sch_netem \
	-p "$here/lab_inside.sh" 6.1 lab_inside.sh
