# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: awk -f algo/list.awk FILE... >list.c
#
# Makes coll_algos[] of algo.h from every `const struct coll_algo NAME = {` in the files,
# sorted by name: a new algorithm is its own file and nothing else.

/^const struct coll_algo coll_[a-z0-9_]+ = / {
	name = $4
	for (i = count++; i > 0 && names[i - 1] > name; i--)
		names[i] = names[i - 1]
	names[i] = name
}

END {
	print "/* Made by algo/list.awk. */"
	print "#include \"algo/common/algo.h\"\n"
	for (i = 0; i < count; i++)
		print "extern const struct coll_algo " names[i] ";"
	print "\nconst struct coll_algo *const coll_algos[] = {"
	for (i = 0; i < count; i++)
		print "\t&" names[i] ","
	print "\tNULL,\n};"
}
