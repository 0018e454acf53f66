#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# core/ compiles with the kernel's own build, and only its float loops touch the FPU.
. "$(dirname "$0")/../lib/tap.sh"

set -- /lib/modules/*/build/Makefile
if [ ! -e "$1" ]; then
	skip "core/ compiles for the kernel" "no kernel headers: apt-get install linux-headers-amd64"
	tap_end
	exit
fi

quietly_compiled() {
	said=$(make --no-print-directory module BUILD="$BUILD" 2>&1) && ! echo "$said" | grep -q 'warning:' ||
		{ echo "$said" | grep -v '^  ' | tail -20 | sed 's/^/# /'; return 1; }
}
ok "core/ compiles for the kernel without a warning" quietly_compiled

# The second build, where sparse looks at each file: it says CHECK when it does.
sparse_finds_nothing() {
	said=$(make --no-print-directory module MODULE="$BUILD/sparse" \
		SPARSE="C=2 CF=-D__CHECK_ENDIAN__" 2>&1) && echo "$said" | grep -q '^  CHECK' &&
		! echo "$said" | grep -Eq '(warning|error):' ||
		{ echo "$said" | grep -v '^  ' | tail -20 | sed 's/^/# /'; return 1; }
}
if command -v sparse >/dev/null; then
	ok "sparse finds nothing" sparse_finds_nothing
else
	skip "sparse finds nothing" "sparse is not installed"
fi

if [ "$(uname -m)" != x86_64 ]; then
	skip "who touches the FPU" "the test knows x86-64 only"
	tap_end
	exit
fi

uses_fpu() {
	objdump -d "$BUILD/module/core/$1.o" | grep -q '%[xy]mm'
}
for part in check step match reduce noise/noise circuit/circuit; do
	ok "$part is there and leaves the FPU alone" \
		test -s "$BUILD/module/core/$part.o" -a -z "$(uses_fpu $part && echo it does not)"
done
ok "the float loops use it" uses_fpu reduce_float
tap_end
