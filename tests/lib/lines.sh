# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# For scripts that look for lines in $work/out: sourced after tap.sh.

has() {		# PATTERN ...: a line for each
	for pattern; do
		grep -Eq -- "$pattern" "$work/out" ||
			{ echo "# no line is like $pattern"; sed 's/^/# /' "$work/out"; return 1; }
	done
}
