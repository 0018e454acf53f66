#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The fault campaign where coll.ko goes and comes while ranks use it.
here=$(dirname "$0")
build=${BUILD:-build}
exec "$here/run" -t 560 -s 500 -p "$build/coll" -p "$build/libexec/coll/coll-store" \
	-p "$build/tests/chaos/chaos" -p "$build/tests/chaos/chaos_job" -p "$build/tests/chaos/fault.so" -p /bin/sh \
	-p "$(command -v ln)" -p "$here/campaign_inside.sh" 6.12 campaign_inside.sh
