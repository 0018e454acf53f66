# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The CSV of a job whose noise changes: a table of each phase from 2 s after its begin on, when what
# is chosen has had time to follow, and whether auto takes at most `most` (1.1) of the time of the best other way; with plot=1 a gnuplot script of the time per call over time.
NR == 1 { next }
{
	if (!($2 in begun)) {
		phase[++phases] = $2
		begun[$2] = before
	}
	if (!($3 in seen))
		way[++ways] = $3
	seen[$3]
	before = $1
	rows[$3] = rows[$3] $1 " " $5 "\n"
	ends = $1
	if ($1 < begun[$2] + 2)
		next
	part[$2, $3, ++parts[$2, $3]] = $4 * $5
	of_part[$2, $3, parts[$2, $3]] = $4
	calls[$2, $3] += $4
	us[$2, $3] += $4 * $5
	if (!index(chosen[$2, $3] ",", $6 ","))
		chosen[$2, $3] = chosen[$2, $3] (chosen[$2, $3] ? ", " : "") $6
}

function mean(p, w) {
	return calls[p, w] ? us[p, w] / calls[p, w] : 0
}

# The best of the other ways: by all of the phase.
function best_way(p,    w, best) {
	for (w = 1; w <= ways; w++)
		if (way[w] != "auto" && (!best || mean(p, way[w]) < mean(p, best)))
			best = way[w]
	return best
}

# Of the ratio to it, the spread by leaving out one half second at a time, in which both took turns (jackknife).
function spread(p, best,    i, n, ratio, sum, squares) {
	n = parts[p, "auto"] < parts[p, best] ? parts[p, "auto"] : parts[p, best]
	if (n < 2)
		return 0
	for (i = 1; i <= n; i++) {
		ratio = (us[p, "auto"] - part[p, "auto", i]) / (calls[p, "auto"] - of_part[p, "auto", i]) / \
			((us[p, best] - part[p, best, i]) / (calls[p, best] - of_part[p, best, i]))
		sum += ratio
		squares += ratio * ratio
	}
	squares = (squares - sum * sum / n) * (n - 1) / n
	return squares > 0 ? sqrt(squares) : 0
}

function print_table(    p, w, best, ratio) {
	if (!most)
		most = 1.1
	printf "\n%-13s", "us a call"
	for (w = 1; w <= ways; w++)
		printf " %10s", way[w]
	print "  auto / best           holds  auto took"
	for (p = 1; p <= phases; p++) {
		printf "%-13s", phase[p]
		for (w = 1; w <= ways; w++)
			printf " %10.0f", mean(phase[p], way[w])
		best = best_way(phase[p])
		if (!best || !mean(phase[p], best) || !mean(phase[p], "auto")) {
			printf "  %-21s %-6s\n", "no calls", "?"
			continue
		}
		ratio = mean(phase[p], "auto") / mean(phase[p], best)
		printf "  %-21s %-6s %s\n", sprintf("%.2f +- %.2f of %s", ratio, spread(phase[p], best), best),
			(ratio <= most ? "yes" : "NO"), chosen[phase[p], "auto"]
	}
	printf "from 2 s after a phase began; best: of the other two, measured in turns with it. Holds: at most %g;\n", most
	print "+-: one standard deviation, by half seconds"
}

function print_plot(    p, w, line) {
	split("muted series3 series1", colour, " ")
	while ((("awk -v as=gnuplot -f tools/common/palette.awk tools/common/palette") | getline line) > 0)
		print line
	print "if (kind eq 'png') set terminal pngcairo size 1100,520 font 'sans,12' background paper"
	print "if (kind eq 'svg') set terminal svg size 1100,520 font 'sans,14' background paper"
	print "set output file"
	for (w = 1; w <= ways; w++)
		printf "$w%d << EOD\n%sEOD\n", w, rows[way[w]]
	print "set title 'An allreduce of 8 bytes while the noise of its job changes'"
	print "set logscale y\nset xlabel 'seconds'\nset ylabel 'us a call, mean of half a second'"
	print "set border 3 lc rgb muted\nset tics nomirror\nset grid ytics lt 1 lc rgb rule back\nset key top left"
	for (p = 1; p <= phases; p++) {
		if (p > 1)
			printf "set arrow from first %g, graph 0 to first %g, graph 1 nohead lc rgb muted\n",
				begun[phase[p]], begun[phase[p]]
		printf "set label '%s' at first %g, graph 0.04 noenhanced\n", phase[p], begun[phase[p]] + ends / 200
	}
	printf "set xrange [0:%g]\nplot", ends
	for (w = 1; w <= ways; w++)
		printf "%s $w%d using 1:2 with linespoints pt 7 ps 0.4 lw 2 lc rgb %s title '%s'", (w > 1 ? "," : ""), w,
			colour[w], way[w]
	print ""
}

END {
	if (plot)
		print_plot()
	else
		print_table()
}
