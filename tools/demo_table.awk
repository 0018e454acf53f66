# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The demo's CSV as one table: sizes and algorithms down, noise and figures across.
# The best of each column within a size is marked.
NR == 1 { next }
{
	if (!($2 in seen_size))
		size[++sizes] = $2
	if (!($3 in seen_algo))
		algo[++algos] = $3
	seen_size[$2] = seen_algo[$3] = 1
	value[$1, $2, $3, 1] = $5	# mean
	value[$1, $2, $3, 2] = $6	# median
	value[$1, $2, $3, 3] = $8	# p99
}

function bytes(n) {
	return n >= 1048576 ? n / 1048576 " MB" : n >= 1024 ? n / 1024 " KB" : n " B"
}

function lowest(n, s, f,    a, best) {
	best = value[n, s, algo[1], f]
	for (a = 2; a <= algos; a++)
		if (value[n, s, algo[a], f] < best)
			best = value[n, s, algo[a], f]
	return best
}

function cell(n, s, a, f,    v, best) {
	v = value[n, s, a, f]
	best = v <= lowest(n, s, f)
	return (best ? bold : "") sprintf("%8.0f%s", v, best ? "*" : " ") (best ? plain : "")
}

# What redundancy is for, in one sentence of means.
function summary(s, plain_one, redundant,    b, r) {
	if (!(("link", s, plain_one, 1) in value) || !(("link", s, redundant, 1) in value))
		return
	b = value["link", s, plain_one, 1]
	r = value["link", s, redundant, 1]
	printf "\n%s with link noise: %s takes %.0f us on average, %s %.0f us, %.2f of it;\n", \
		bytes(s), plain_one, b, redundant, r, r / b
	printf "without noise its median is %.2f of the butterfly's: the price of one more message.\n", \
		value["none", s, redundant, 2] / value["none", s, plain_one, 2]
}

function line(    i) {
	for (i = 0; i < 115; i++)
		printf "-"
	print ""
}

END {
	split("none os link", noise, " ")
	printf "%-31s%-28s%-28s%-28s\n", "microseconds", "|        no noise",
		"|     OS noise (1 in 10 ms)", "|  link noise (100/s, 2 ms)"
	printf "%-31s", "size   algorithm"
	for (n = 1; n <= 3; n++)
		printf "|%8s %8s %8s ", "median", "mean", "p99"
	print ""
	for (s = 1; s <= sizes; s++) {
		line()
		for (a = 1; a <= algos; a++) {
			printf "%-6s %-24s", a == 1 ? bytes(size[s]) : "", algo[a]
			for (n = 1; n <= 3; n++)
				printf "|%s%s%s", cell(noise[n], size[s], algo[a], 2),
					cell(noise[n], size[s], algo[a], 1),
					cell(noise[n], size[s], algo[a], 3)
			print ""
		}
	}
	line()
	print "* best of its column and size; each time is that of the slowest rank"
	summary(size[1], "butterfly", "butterfly-redundant:T=1")
}
