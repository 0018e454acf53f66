# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The demo's CSV as a gnuplot script: one panel a size, one group of bars a kind of
# noise; bars are means, dots medians, whiskers reach up to p99.
# gnuplot -e "kind='svg'; file='...'" SCRIPT
NR == 1 { next }
{
	if (!($2 in seen_size))
		size[++sizes] = $2
	if (!($3 in seen_algo))
		algo[++algos] = $3
	seen_size[$2] = seen_algo[$3] = 1
	row[$1, $2, $3] = $5 " " $6 " " $8
}

function bytes(n) {
	return n >= 1048576 ? n / 1048576 " MB" : n >= 1024 ? n / 1024 " KB" : n " B"
}

# 1, 2 and 5 of each decade, as people say them.
function ticks(    t, unit, list) {
	for (unit = 10; unit <= 1000000; unit *= 10)
		for (t = 1; t <= 5; t += (t == 2 ? 3 : 1))
			list = list sprintf("%s'%s' %d", (list ? "," : ""), \
				(t * unit < 1000 ? t * unit " µs" : t * unit / 1000 " ms"), t * unit)
	return list
}

# One line of coloured squares and names, centred.
function legend(    a, x, width) {
	for (a = 1; a <= algos; a++)
		width += 0.034 + 0.0064 * length(algo[a])
	x = 0.5 - width / 2
	for (a = 1; a <= algos; a++) {
		printf "set object %d rectangle from screen %g,0.05 to screen %g,0.078", a, x, x + 0.014
		printf " fillcolor rgb %s fillstyle solid 1 noborder\n", colour[a]
		printf "set label %d '%s' at screen %g,0.064 left noenhanced\n", a + 2, algo[a], x + 0.018
		x += 0.034 + 0.0064 * length(algo[a])
	}
}

END {
	split("none os link", noise, " ")
	split("muted series3 series7 series1 series4 series2", colour, " ")
	while ((("awk -v as=gnuplot -f tools/common/palette.awk tools/common/palette") | getline line) > 0)
		print line
	print "if (kind eq 'png') set terminal pngcairo size 1280,640 font 'sans,12' background paper"
	print "if (kind eq 'svg') set terminal svg size 1280,640 font 'sans,14' background paper"
	print "set output file"
	for (a = 1; a <= algos; a++) {
		printf "$a%d << EOD\n", a
		for (s = 1; s <= sizes; s++) {
			for (n = 1; n <= 3; n++)
				print (n - 1) * (algos + 1.5) + a, row[noise[n], size[s], algo[a]]
			print "\n"
		}
		print "EOD"
	}
	print "set multiplot"
	print "set label 1 'Allreduce, " ranks " ranks: what noise costs, and what redundant exchanges save'" \
		" at screen 0.5,0.965 center font ',18'"
	print "set label 2 'time of the slowest rank;  bar: mean,  dot: median,  whisker: up to p99'" \
		" at screen 0.5,0.918 center textcolor rgb muted"
	print "set style fill solid 1 noborder\nset boxwidth 0.86\nset logscale y"
	print "set border 3 lc rgb muted\nset tics nomirror\nset xtics scale 0"
	print "set grid ytics lt 1 lc rgb rule back\nset key off"
	print "set tmargin at screen 0.81\nset bmargin at screen 0.165"
	print "set ytics (" ticks() ")"
	legend()
	middle = (algos + 1) / 2
	printf "set xtics ('no noise' %g, 'OS noise' %g, 'link noise' %g)\n", middle,
		middle + algos + 1.5, middle + 2 * (algos + 1.5)
	printf "set xrange [-0.2:%g]\n", 3 * (algos + 1.5) - 0.3
	for (s = 1; s <= sizes; s++) {
		printf "set lmargin at screen %g\nset rmargin at screen %g\n", \
			0.065 + (s - 1) * 0.318, 0.065 + (s - 1) * 0.318 + 0.275
		printf "set title '%s' font ',15'\n", bytes(size[s])
		lo = hi = 0
		for (n = 1; n <= 3; n++)
			for (a = 1; a <= algos; a++) {
				split(row[noise[n], size[s], algo[a]], v, " ")
				if (!lo || v[2] < lo) lo = v[2]
				if (v[3] > hi) hi = v[3]
			}
		printf "set yrange [%g:%g]\nplot", lo / 2, hi * 1.3
		for (a = 1; a <= algos; a++)
			printf "%s $a%d index %d using 1:2 with boxes lc rgb %s notitle", \
				(a > 1 ? "," : ""), a, s - 1, colour[a]
		for (a = 1; a <= algos; a++)
			printf ", $a%d index %d using 1:3:3:4 with yerrorbars pt 7 ps 0.55 lw 1.2 lc rgb ink notitle", \
				a, s - 1
		print ""
		print "unset label\nunset object"
	}
	print "unset multiplot"
}
