#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# coll lab with the kernel's netem, which only the test machine has.
here=$(dirname "$0")
build=${BUILD:-build}
exec "$here/lab_run" -p "$build/tests/multi/concurrent_collectives" -p /bin/sh -p "$here/lab_inside.sh" \
	6.1 lab_inside.sh
