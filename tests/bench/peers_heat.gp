# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# palette: the path of tools/common/palette; data: lines "collective ranks bytes ratio"; picture: the SVG; transport: a word for the title.
columns = system("awk '{ print $2 \":\" $3 }' ".data." | sort -t: -k1n,1 -k2n,2 -u | tr '\\n' ' '")
rows = system("awk '!seen[$1]++ { print $1 }' ".data." | tr '\\n' ' '")
size_of(b) = b >= 1048576 ? sprintf("%dM", b / 1048576) : b >= 1024 ? sprintf("%dK", b / 1024) : sprintf("%d", b)
label(c) = sprintf("%s: %s", c[1:strstrt(c, ":") - 1], size_of(int(c[strstrt(c, ":") + 1:strlen(c)])))
place(list, word) = (at = 0, sum [i = 1:words(list)] (word(list, i) eq word ? (at = i) : 0), at)
load "< awk -v as=gnuplot -f ".palette.".awk ".palette
set terminal svg size 460 + 26 * words(columns), 150 + 26 * words(rows) font "sans,11" background paper
set output picture
set title "coll's time to the better MPI's, over ".transport."; below 1: coll is faster"
set palette defined (-2 good, 0 panel, 2 bad)
set cbrange [-2:2]
set cbtics ("1/4" -2, "1/2" -1, "1" 0, "2" 1, "4" 2)
set cblabel "ratio"
set xlabel "ranks: bytes"
set tmargin 3
set xrange [0.5:words(columns) + 0.5]
set yrange [words(rows) + 0.5:0.5]
set xtics rotate by 90 right scale 0 ()
set ytics scale 0 ()
do for [i = 1:words(columns)] { set xtics add (label(word(columns, i)) i) }
do for [i = 1:words(rows)] { set ytics add (word(rows, i) i) }
column_of(r, b) = place(columns, sprintf("%s:%s", r, b))
unset key
plot data using (column_of(strcol(2), strcol(3))):(place(rows, strcol(1))):(0.5):(0.5):(log($4) / log(2)) \
	with boxxyerror fillstyle solid border lc rgb paper fc palette, \
	data using (column_of(strcol(2), strcol(3))):(place(rows, strcol(1))):(sprintf("%.2g", $4)) \
	with labels font ",8"
