# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The median of list[1] to list[n], which it sorts.
function median(list, n,   i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
			t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
		}
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
# The interval that has the median of what list[1] to list[n] (sorted) are drawn from, 19 times of 20: "low to high".
function median_interval(list, n,   k) {
	k = int(n / 2 - 0.98 * sqrt(n))
	if (k < 1)
		k = 1
	return sprintf("%.3f to %.3f", list[k], list[n + 1 - k])
}
