# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The CPUs that this test may use, as a list, and the first and the last of them: to be sourced.
allowed=$(taskset -pc $$ | sed 's/.*: //')
first=$(echo "$allowed" | sed 's/[-,].*//')
last=$(echo "$allowed" | sed 's/.*[-,]//')
