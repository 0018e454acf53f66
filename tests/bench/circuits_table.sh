#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The results of circuits.sh as the table of docs/results/circuits.md (ms; the model in brackets), the
# number of points near the model, and violations of the paper's order: naive, then k ports in turns,
# more ports no slower, then the planner's choice. If the model has the same time for two of them (2 %),
# they are in order if they are within 10 %.
# usage: circuits_table.sh CSV
awk -F, '
function ms(x) { return sprintf(x < 1000 ? "%.3g" : "%.0f", x) }
function size(b) { return b >= 1048576 ? b / 1048576 " MiB" : b >= 1024 ? b / 1024 " KiB" : b }
function compare(a, b, why) {
	if (!(a in time) || !(b in time))
		return
	same = model[a] > 0.98 * model[b]
	pairs[same]++
	if (time[a] <= (same ? 1.1 : 1) * time[b])
		ordered[same]++
	else
		out[++outs] = why ": " a ": " ms(time[a]) " after " ms(time[b])
}
NR == 1 || $8 <= 0 { next }
{
	if (!($1 in known)) { known[$1]; what[++whats] = $1 }
	if (!(($1, $5) in sized)) { sized[$1, $5]; sizes[$1] = sizes[$1] " " $5 }
	key = $1 " " $5 " " $3 " " $2
	time[key] = $6; model[key] = $8
	near = $6 >= 0.85 * $8 && $6 <= 1.15 * $8
	points++; all += near; of[$3]++; good[$3] += near
	wide += $6 >= 0.7 * $8 && $6 <= 1.3 * $8
	ratio[points] = $6 / $8
	if (!near) far[++fars] = key ": " ms($6) " (" ms($8) ")"
}
END {
	columns = split("naive 1,paper 2,paper 3,paper 4,best 2,best 3,best 4", column, ",")
	print "| | bytes | naive | paper 5, k = 2 | 3 | 4 | ours, k = 2 | 3 | 4 |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (w = 1; w <= whats; w++) {
		n = split(sizes[what[w]], bytes, " ")
		for (i = 2; i <= n; i++)	# by size
			for (j = i; j > 1 && bytes[j] + 0 < bytes[j - 1] + 0; j--) {
				t = bytes[j]; bytes[j] = bytes[j - 1]; bytes[j - 1] = t
			}
		for (i = 1; i <= n; i++) {
			at = what[w] " " bytes[i] " "
			line = "| " (i == 1 ? what[w] : "") " | " size(bytes[i]) " |"
			for (c = 1; c <= columns; c++) {
				key = at column[c]
				line = line (key in time ? " " ms(time[key]) " (" ms(model[key]) ") |" : " |")
			}
			print line
			for (k = 2; k <= 4; k++) {
				compare(at "paper " k, at "naive 1", "naive is faster")
				compare(at "best " k, at "paper " k, "the paper is faster")
				if (k > 2)
					compare(at "paper " k, at "paper " k - 1, "fewer ports are faster")
			}
		}
	}
	for (i = 2; i <= points; i++)
		for (j = i; j > 1 && ratio[j] < ratio[j - 1]; j--) {
			t = ratio[j]; ratio[j] = ratio[j - 1]; ratio[j - 1] = t
		}
	printf "\n%d of %d within 15 %%, %d within 30 %%; median %.2f, from %.2f to %.2f times the model\n",
		all, points, wide, ratio[int((points + 1) / 2)], ratio[1], ratio[points]
	for (v in of)
		printf "%s: %d of %d\n", v, good[v], of[v]
	for (i = 1; i <= fars; i++)
		print "not within 15 %: " far[i]
	printf "order: %d of %d; where the model has no difference, alike: %d of %d\n", ordered[0],
		pairs[0], ordered[1], pairs[1]
	for (i = 1; i <= outs; i++)
		print out[i]
}' "${1:?usage: circuits_table.sh CSV}"
