# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# The lines of choice.sh, those of kind `all` first, then `chosen` and `final`: what the chosen
# algorithms lose to the best ones.
BEGIN {
	FS = ","
	limit = 1.1
	wanted = 95	# percent of the cells
}

$1 == "all" || $1 == "final" {
	cell = $2 "," $3 "," $6
	if (!(cell in known)) {
		known[cell] = 1
		order[++cells] = cell
	}
	wrong += $9
}

$1 == "all" && $7 == "auto" { auto[cell] = $11 }
$1 == "all" && $7 != "auto" && (!(cell in best) || $11 < best[cell]) {
	best[cell] = $11
	name[cell] = $7
}
$1 == "chosen" { chosen[$2 "," $3 "," $4] = $5 }
# From here on both times are those of the final.
$1 == "final" && $7 == "auto" {
	auto[cell] = $11
	delete best[cell]
}
$1 == "final" && $7 != "auto" && (!(cell in best) || $11 < best[cell]) {
	best[cell] = $11
	name[cell] = $7
}

# The chosen one by its name is no better than itself.
function ratio_of(cell) {
	if (cell in chosen && chosen[cell] == name[cell] || auto[cell] <= best[cell])
		return 1
	return auto[cell] / best[cell]
}

function head() {
	print "| where | collective | bytes | chosen | µs | best by name | µs | chosen / best |"
	print "|---|---|---|---|---|---|---|---|"
}

function row(cell, ratio,	part) {
	split(cell, part, ",")
	printf "| %s | %s | %d | %s | %.1f | %s | %.1f | %.2f |\n", part[1], part[2], part[3],
		(cell in chosen ? chosen[cell] : "?"), auto[cell], name[cell], best[cell], ratio
}

function summary(what, key) {
	printf "%s: %d cells, %d (%.0f %%) at most %.2f of the best, %.2f in the geometric mean, " \
		"the worst %.2f\n", what, count[key], within[key], 100 * within[key] / count[key], limit,
		exp(logs[key] / count[key]), worst[key]
}

END {
	for (i = 1; i <= cells; i++) {
		cell = order[i]
		if (!(cell in auto) || !(cell in best))
			continue
		ratio = ratio_of(cell)
		where = cell
		sub(/,.*/, "", where)
		if (!(where in count))
			places[++different] = where
		for (k = 1; k <= 2; k++) {
			key = k == 1 ? where : ""
			count[key]++
			within[key] += ratio <= limit
			logs[key] += log(ratio)
			if (ratio > worst[key])
				worst[key] = ratio
		}
		if ((all || ratio > limit) && !printed++)
			head()
		if (all || ratio > limit)
			row(cell, ratio)
	}
	if (printed)
		print ""
	for (i = 1; i <= different; i++)
		summary(places[i], places[i])
	if (different)
		summary("all", "")
	if (count[""])
		printf "wanted: %d %% of the cells: %s\n", wanted,
			(100 * within[""] >= wanted * count[""] ? "yes" : "no")
	if (wrong)
		print wrong " wrong results"
	exit !count[""] || wrong
}
