# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The CSV of a job whose noise changes: a table of each phase from 2 s after its begin on, when what
# is chosen has had time to follow; with plot=1 a gnuplot script of the time per call over time.
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
	calls[$2, $3] += $4
	us[$2, $3] += $4 * $5
	if (!index(chosen[$2, $3] ",", $6 ","))
		chosen[$2, $3] = chosen[$2, $3] (chosen[$2, $3] ? ", " : "") $6
}

function mean(p, w) {
	return calls[p, w] ? us[p, w] / calls[p, w] : 0
}

function print_table(    p, w, best) {
	printf "\n%-13s", "us a call"
	for (w = 1; w <= ways; w++)
		printf " %10s", way[w]
	print "  auto / best  auto took"
	for (p = 1; p <= phases; p++) {
		printf "%-13s", phase[p]
		best = 0
		for (w = 1; w <= ways; w++) {
			printf " %10.0f", mean(phase[p], way[w])
			if (way[w] != "auto" && (!best || mean(phase[p], way[w]) < best))
				best = mean(phase[p], way[w])
		}
		printf " %12.2f  %s\n", best ? mean(phase[p], "auto") / best : 0, chosen[phase[p], "auto"]
	}
	print "from 2 s after a phase began; best: of the other two, measured in turns with it"
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
