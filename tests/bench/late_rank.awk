# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The table of late_rank: a line of rank 0's for each algorithm. Exit code 1: there is none.
BEGIN {
	printf "%-32s %6s %27s %27s\n", "", "", "the others, us", "all, us"
	printf "%-32s %6s %9s %8s %8s %9s %8s %8s\n", "allreduce", "calls", "mean", "median", "p99", "mean", "median", "p99"
}
/ others / {
	sub(/^\[0\] /, "")
	printf "%-32s %6d %9.0f %8.0f %8.0f %9.0f %8.0f %8.0f\n", $1, $2, $4, $5, $6, $8, $9, $10
	lines++
}
END { exit !lines }
