# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: coll verify --list | awk -f man/algorithms.awk - PAGE
#
# Puts the table of algorithms where PAGE says .\" ALGORITHMS.

function row(collective, names,	words, count, i, line) {
	count = split(names, words, " ")
	line = words[1]
	for (i = 2; i <= count; i++)
		if (length(line) + length(words[i]) > 46) {
			print collective "\t" line ","
			collective = "\\&"
			line = words[i]
		} else {
			line = line ", " words[i]
		}
	print collective "\t" line
}

FNR == NR {
	if (!($1 in names))
		order[count++] = $1
	name = $2
	gsub(/-/, "\\-", name)
	names[$1] = names[$1] " " name
	next
}

/^\.\\" ALGORITHMS$/ {
	print ".TS\nnokeep;\nl l.\ncollective\talgorithms\n_"
	for (i = 0; i < count; i++)
		row(order[i], names[order[i]])
	print ".TE"
	next
}

{ print }
