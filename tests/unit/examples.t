#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The programs of examples/ build against the installed library, and do what they say.
. "$(dirname "$0")/../lib/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
there=$root/opt/coll
unset COLL_RANK COLL_CONFIG

ok "make install" quiet make --no-print-directory install DESTDIR="$root" PREFIX=/opt/coll
export PKG_CONFIG_PATH="$there/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
export LD_LIBRARY_PATH="$there/lib"
cp -r examples "$work/examples"

ok "make builds them" quiet make --no-print-directory -C "$work/examples" \
	CFLAGS="-O2 -pedantic -Wall -Wextra -Werror" CXXFLAGS="-O2 -pedantic -Wall -Wextra -Werror"

run() {		# [OPTION...] PROGRAM, by 4 ranks: keeps $said
	said=$("$there/bin/coll" run -n 4 --no-prefix "$@" 2>&1 | sort)
}

# check FOLDER: of the programs in it.
check() {
	run -- "$1/allreduce"
	is "allreduce" "$said" "rank 0 of 4: sum 10
rank 1 of 4: sum 10
rank 2 of 4: sum 10
rank 3 of 4: sum 10"
	run -- "$1/overlap"
	is "overlap" "$(printf '%s\n' "$said" | sed 's/, own work .*//')" \
		"rank 0: last sum 400002, last greatest 100002
rank 1: last sum 400002, last greatest 100002
rank 2: last sum 400002, last greatest 100002
rank 3: last sum 400002, last greatest 100002"
	run -- "$1/persistent"
	is "persistent" "$(printf '%s\n' "$said" | grep -c '^rank [0-3]: 15.0 after 12 steps$')" 4
	like "persistent says what was chosen" "$said" '^allreduce of 1 x 8 bytes, 4 ranks: '
	run --keep-going -q -- "$1/survive"
	is "survive" "$(printf '%s\n' "$said" | grep -E '^(lost|rank [0-9]+: total)')" \
		"lost 1 rank, the first is 3; 3 go on
rank 0: total 27
rank 1: total 27
rank 2: total 27"
	run -- "$1/rows"
	is "rows" "$said" "rank 0: sum of its row 3
rank 1: sum of its row 3
rank 2: sum of its row 7
rank 3: sum of its row 7"
}
check "$work/examples"

if command -v cmake >/dev/null; then
	cmake_builds() {
		cmake -S "$work/examples" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$there" && cmake --build "$work/cmake"
	}
	ok "CMake builds them" quiet cmake_builds
	check "$work/cmake"
else
	skip "CMake builds them" "cmake is not installed"
fi

if command -v python3 >/dev/null; then
	run -- python3 "$work/examples/sum.py"
	is "sum.py" "$said" "rank 0: [6.0, 10.0, 14.0]
rank 1: [6.0, 10.0, 14.0]
rank 2: [6.0, 10.0, 14.0]
rank 3: [6.0, 10.0, 14.0]"
else
	skip "sum.py" "python3 is not installed"
fi

python=${PYTHON:-/usr/bin/python3}
if [ -e "$BUILD/python/coll/_coll.abi3.so" ] && "$python" -c 'import numpy' 2>/dev/null; then
	run --keep-going -q -- env PYTHONPATH="$BUILD/python" PYTHONDONTWRITEBYTECODE=1 "$python" \
		"$work/examples/steps.py"
	is "steps.py" "$said" "rank 0 of 3: total 1116
rank 1 of 3: total 1116
rank 2 of 3: total 1116
step 5: lost rank 3
step 5: lost rank 3
step 5: lost rank 3"
else
	skip "steps.py" "python3-dev or python3-numpy is not installed"
fi

# Each program is in the table of examples/README.md.
ls examples | grep -E '\.(c|cc|py)$' | while read -r file; do
	grep -q "^| .$file. |" examples/README.md || echo "$file"
done >"$work/missing"
ok "examples/README.md lists each program" test ! -s "$work/missing"
tap_end
