#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# One palette for all pictures: readable on paper and in the dark, and nothing has colours of its own.
. "$(dirname "$0")/../lib/tap.sh"
cd "$(dirname "$0")/../.."
palette=tools/common/palette

colours() { grep -v '^#' $palette | grep .; }
malformed() { colours | grep -Ev '^[a-z]+[0-9]?	+#[0-9a-f]{6}	#[0-9a-f]{6}$'; }
ok "each has a name, a colour on paper and one in the dark" silent eval '! malformed'

# WCAG's contrast: (lighter + 0.05) / (darker + 0.05) of relative luminances.
faint() {
	colours | awk '
	function digit(c) { return index("0123456789abcdef", c) - 1 }
	function part(text, at,    v) {
		v = (16 * digit(substr(text, at, 1)) + digit(substr(text, at + 1, 1))) / 255
		return v <= 0.04045 ? v / 12.92 : exp(2.4 * log((v + 0.055) / 1.055))
	}
	function luminance(text) {
		return 0.2126 * part(text, 2) + 0.7152 * part(text, 4) + 0.0722 * part(text, 6)
	}
	function contrast(a, b,    x, y) {
		x = luminance(a) + 0.05
		y = luminance(b) + 0.05
		return x > y ? x / y : y / x
	}
	$1 == "paper" { paper[2] = $2; paper[3] = $3 }
	$1 == "panel" { panel[2] = $2; panel[3] = $3 }
	{
		least = $1 ~ /^series/ ? 3 : $1 ~ /^(ink|muted|good|fair|bad)$/ ? 4.5 : 1
		for (i = 2; i <= 3; i++)
			if (contrast($i, paper[i]) < least || (least > 4 && contrast($i, panel[i]) < 4.5))
				printf "%s: %s is %.2f to 1 on %s\n", $1, $i, contrast($i, paper[i]), paper[i]
	}'
}
ok "series are 3:1 to the paper, words 4.5:1" silent faint

missing() {	# AS COLUMN
	awk -v as="$1" -f $palette.awk $palette >"$work/made"
	colours | awk -v column="$2" '{ print $column }' | while read -r colour; do
		grep -Fq "$colour" "$work/made" || echo "$1 has no $colour"
	done
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ok "all are in the style of pages, on paper" silent missing css 2
ok "all are in the style of pages, in the dark" silent missing css 3
ok "all are in gnuplot's script" silent missing gnuplot 2
ok "another form is refused" sh -c "! awk -v as=x -f $palette.awk $palette 2>'$work/err'"
like "in words" "$(cat "$work/err")" "as 'x'; valid: css, gnuplot"
own() {
	grep -rnE --include='*.[ch]' --include='*.sh' --include='*.awk' --include='*.gp' --include='*.css' \
		--include='*.js' "#[0-9a-fA-F]{6}\b|background .white|lc (rgb )?'[a-z]" tools sim flit tests/bench
}
ok "nobody has colours of its own" silent eval '! own'
tap_end
