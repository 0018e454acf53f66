# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# Lines "library ranks collective bytes median p99 ...", one for each round: prints the table
# of peers.sh, and writes NAME.csv, NAME.json and NAME.heat.

# The median of list[1 .. count], which it sorts.
function middle(list, count,	i, j, swap) {
	for (i = 2; i <= count; i++)
		for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
			swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap
		}
	return count ? list[int((count + 1) / 2)] : 0
}

function median(of, cell, library,	i, list) {
	for (i = 1; i <= rounds[cell, library]; i++)
		list[i] = of[cell, library, i]
	return middle(list, rounds[cell, library])
}

# The lesser of two times; 0: there is none.
function better_of(a, b) {
	return a && (!b || a < b) ? a : b
}

function figure(us) {
	return us ? sprintf("%.1f", us) : "-"
}

{
	cell = $2 " " $3 " " $4
	if (!(cell in seen)) { seen[cell] = 1; cells[++n] = cell }
	value[cell, $1, ++rounds[cell, $1]] = $5
	tail[cell, $1, rounds[cell, $1]] = $6
}

function count_cell(rank, ratio, tails) {
	split("all," rank, part_of, ",")
	for (k in part_of) {
		g = part_of[k]
		logs[g] += log(ratio); tail_logs[g] += log(tails); count[g]++
		slower[g] += ratio > 1; always[g] += least > 1
	}
	if (!(rank in had)) { had[rank] = 1; order[++kinds] = rank }
}

function summary(g, title) {
	printf "%s: %d cells, geometric mean %.2f (p99: %.2f), %d slower than the better MPI, " \
		"%d of them in every round\n", title, count[g], exp(logs[g] / count[g]),
		exp(tail_logs[g] / count[g]), slower[g], always[g]
}

# What floors.c has printed: "floor: NAME   MEDIAN us (least LEAST)".
function write_floors(path, json,   line, what, part, done) {
	printf "  \"floors\": [" > json
	while ((getline line < path) > 0) {
		if (!match(line, / +[0-9.]+ us \(least [0-9.]+\)$/))
			continue
		what = substr(line, 8, RSTART - 8)
		split(substr(line, RSTART), part, /[ ()]+/)
		printf "%s\n    { \"what\": \"%s\", \"us\": %s, \"least_us\": %s }",
			done++ ? "," : "", what, part[2], part[5] > json
	}
	print "\n  ]," > json
	close(path)
}

END {
	csv = name ".csv"; json = name ".json"; heat = name ".heat"
	print "ranks,collective,bytes,coll_us,openmpi_us,mpich_us,coll_p99_us,openmpi_p99_us," \
		"mpich_p99_us,ratio,least,greatest,floor_us" > csv
	printf "{\n  \"transport\": \"%s\",\n", transport > json
	write_floors(floors, json)
	printf "  \"cells\": [" > json
	printf "" > heat
	print "| ranks | collective | bytes | coll µs (p99) | Open MPI µs (p99) | MPICH µs (p99) |" \
		" coll / better | in single rounds | floor µs |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		cell = cells[i]
		c = median(value, cell, "coll"); cp = median(tail, cell, "coll")
		o = median(value, cell, "openmpi"); op = median(tail, cell, "openmpi")
		m = median(value, cell, "mpich"); mp = median(tail, cell, "mpich")
		better = better_of(o, m); f = median(value, cell, "floor")
		split(cell, part, " ")
		if (!better || !c) {
			printf "| %s | %s | %s | %s | %s | %s | - | - | %s |\n", part[1], part[2], part[3],
				figure(c), figure(o), figure(m), figure(f)
			continue
		}
		least = greatest = 0
		for (r = 1; r <= rounds[cell, "coll"]; r++) {
			peer = better_of(value[cell, "openmpi", r], value[cell, "mpich", r])
			if (!peer)
				continue
			ratio = value[cell, "coll", r] / peer
			if (!least || ratio < least) least = ratio
			if (ratio > greatest) greatest = ratio
		}
		ratio = c / better
		printf "| %s | %s | %s | %.1f (%.0f) | %s (%.0f) | %s (%.0f) | %.2f | %.2f … %.2f | %s |\n",
			part[1], part[2], part[3], c, cp, figure(o), op, figure(m), mp, ratio, least,
			greatest, figure(f)
		printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%.3f,%.3f,%.3f,%s\n", part[1], part[2], part[3], c, o, m,
			cp, op, mp, ratio, least, greatest, f > csv
		printf "%s\n    { \"ranks\": %s, \"collective\": \"%s\", \"bytes\": %s, \"coll_us\": %s, " \
			"\"openmpi_us\": %s, \"mpich_us\": %s, \"coll_p99_us\": %s, \"openmpi_p99_us\": %s, " \
			"\"mpich_p99_us\": %s, \"ratio\": %.3f, \"least\": %.3f, \"greatest\": %.3f, \"floor_us\": %s }",
			done++ ? "," : "", part[1], part[2], part[3], c, o ? o : "null", m ? m : "null", cp,
			o ? op : "null", m ? mp : "null", ratio, least, greatest, f ? f : "null" > json
		printf "%s %s %s %.3f\n", part[2], part[1], part[3], ratio > heat
		count_cell(part[1], ratio, cp / better_of(op, mp))
	}
	print "\n  ]\n}" > json
	print ""
	for (i = 1; i <= kinds; i++)
		summary(order[i], order[i] " ranks")
	if (count["all"])
		summary("all", "all")
}
