#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The dashboard for Grafana: JSON, without two panels in one place, of metrics that there are.
. "${0%/*}/../lib/tap.sh"
dashboard=packaging/grafana.json

ok "it is JSON, with panels" jq -e '.panels | length > 5' $dashboard
is "no two panels overlap, or have one number" "$(jq -r '
	.panels as $p | [range($p | length) as $i | range($i) as $j | $p[$i] as $a | $p[$j] as $b |
		select($a.id == $b.id or
		       ($a.gridPos.x < $b.gridPos.x + $b.gridPos.w and
			$b.gridPos.x < $a.gridPos.x + $a.gridPos.w and
			$a.gridPos.y < $b.gridPos.y + $b.gridPos.h and
			$b.gridPos.y < $a.gridPos.y + $a.gridPos.h))] | length' $dashboard)" 0
for metric in $(jq -r '.panels[].targets[].expr' $dashboard | grep -o 'coll_[a-z_]*' | sort -u); do
	family=${metric%_total}
	ok "$metric is told by colld, coll doctor or coll show" quiet \
		grep -rqE "\\b($metric|$family)\\b" daemon tools/doctor tools/show
done
tap_end
