# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# Lines "mpi ranks collective bytes variant mean", one for each round; variant "alone": without the
# shim. Prints a table, and a line for each variant, MPI and number of ranks. With median.awk.

{
	cell = $1 " | " $2 " | " $3 " | " $4
	if (!(cell in seen)) { seen[cell] = 1; cells[++n] = cell; kind[cell] = $1 ", " $2 " ranks" }
	if ($5 != "alone" && !($5 in known)) { known[$5] = 1; variants[++kinds] = $5 }
	value[cell, $5, ++rounds[cell, $5]] = $6
}

function middle(cell, variant,   i, list) {
	for (i = 1; i <= rounds[cell, variant]; i++)
		list[i] = value[cell, variant, i]
	return rounds[cell, variant] ? median(list, rounds[cell, variant]) : 0
}

# Of the least of all rounds: what a busy machine spoils last.
function least_by_least(cell, variant,   i, a, b) {
	for (i = 1; i <= rounds[cell, variant]; i++)
		if (!a || value[cell, variant, i] < a)
			a = value[cell, variant, i]
	for (i = 1; i <= rounds[cell, "alone"]; i++)
		if (!b || value[cell, "alone", i] < b)
			b = value[cell, "alone", i]
	lowest = b ? a / b : 0
	return sprintf("%.2f", lowest)
}

# Of the single rounds' ratios: text, and in `least` and `typical`.
function ratios(cell, variant,   i, m, list) {
	for (i = 1; i <= rounds[cell, variant] && i <= rounds[cell, "alone"]; i++)
		list[++m] = value[cell, variant, i] / value[cell, "alone", i]
	if (!m)
		return "-"
	typical = median(list, m)
	least = list[1]
	return sprintf("%.2f (%.2f … %.2f)", typical, list[1], list[m])
}

function count_cell(group) {
	if (!(group in count)) groups[++group_count] = group
	count[group]++
	logs[group] += log(typical)
	lows[group] += log(lowest)
	slower[group] += typical > 1.1
	always[group] += least > 1.1
}

END {
	printf "| MPI | ranks | collective | bytes | alone µs |"
	for (v = 1; v <= kinds; v++) printf " %s µs | by alone | least by least |", variants[v]
	printf "\n|---|---|---|---|---|"
	for (v = 1; v <= kinds; v++) printf "---|---|---|"
	printf "\n"
	for (c = 1; c <= n; c++) {
		cell = cells[c]
		printf "| %s | %.2f |", cell, middle(cell, "alone")
		for (v = 1; v <= kinds; v++) {
			typical = least = 0
			text = ratios(cell, variants[v])
			printf " %.2f | %s | %s |", middle(cell, variants[v]), text,
				least_by_least(cell, variants[v])
			if (typical)
				count_cell(variants[v] ", " kind[cell])
		}
		printf "\n"
	}
	printf "\n"
	for (g = 1; g <= group_count; g++)
		printf "%s: %d cells, geometric mean %.2f (least by least %.2f), %d slower by more than 10 %%, %d of them in every round\n",
			groups[g], count[groups[g]], exp(logs[groups[g]] / count[groups[g]]),
			exp(lows[groups[g]] / count[groups[g]]),
			slower[groups[g]], always[groups[g]]
	if (!group_count)
		print "no cells"
}
