#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# In the test machine: coll.ko is unloaded and loaded again under jobs that use it, or would.
export PATH=/bin COLL_STORE_PROGRAM=/bin/coll-store
ln -s /bin/coll /coll	# where the campaign looks for it

what="coll.ko goes and comes, no rank notices, nothing holds it afterwards"
if /bin/chaos --only module --module /coll.ko --rounds 6 --seed 1 --deadline 60 >/tmp/said 2>&1; then
	echo "ok - $what"
else
	echo "not ok - $what"
fi
while read -r line; do echo "# $line"; done </tmp/said
