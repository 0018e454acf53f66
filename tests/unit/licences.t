#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Every source file says its licence in its first lines, the one of its folder; and scripts
# of tests are programs, or nothing runs them.
. "$(dirname "$0")/../lib/tap.sh"
kernel="GPL-2.0 OR BSD-3-Clause"
rest="LGPL-2.1-or-later OR BSD-3-Clause"

# What git tracks; in an unpacked archive, all there is but what was built.
files() {
	git ls-files 2>/dev/null | grep . ||
		find . -type f ! -path './build/*' ! -path './.git/*' | sed 's|^\./||'
}

# Prose, pictures, inputs of fuzzers and the licences themselves say it in COPYING.
sources() {
	files | grep -Ev '^(LICENSES/.*|tests/fuzz/corpus/.*|debian/(changelog|copyright|source/format)|COPYING|\.gitignore|\.clang-format)$|\.(md|svg|csv|json)$'
}

licence_of() {	# FILE
	case $1 in
	kmod/*) echo "GPL-2.0" ;;
	core/* | uapi/* | Kbuild | dkms.conf) echo "$kernel" ;;
	*) echo "$rest" ;;
	esac
}

unlicensed() {
	sources | while read -r file; do
		head -3 "$file" | grep -Eq "SPDX-License-Identifier: $(licence_of "$file")( \*[/)])?$" ||
			echo "$file: $(licence_of "$file")"
	done
}

no_programs() {
	files | grep '\.t$' | while read -r file; do
		[ -x "$file" ] || echo "$file: chmod +x"
	done
}

ok "there are sources" test "$(sources | wc -l)" -gt 100
ok "sources say their licence" silent unlicensed
ok "scripts of tests are programs" silent no_programs
for name in GPL-2.0 LGPL-2.1 BSD-3-Clause; do
	ok "the text of $name is there" test -s "LICENSES/$name"
done
like "COPYING speaks of what goes into the kernel" "$(cat COPYING)" "uapi/ core/.*$kernel"
like "and of the rest" "$(cat COPYING)" "all else.*$rest"
tap_end
