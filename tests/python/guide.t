#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# docs/guide/python.md: its programs say what it says. The stubs have what the module has.
. "${0%/*}/../lib/tap.sh"
here=${0%/*}
guide=$here/../../docs/guide/python.md
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=$(realpath "$BUILD")/python
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
unset COLL_RANK COLL_CONFIG

if [ ! -e "$PYTHONPATH/coll/_coll.abi3.so" ] || ! "$python" -c 'import numpy' 2>/dev/null; then
	echo "1..0 # SKIP python3-dev or python3-numpy is not installed; make deps does it"
	exit
fi

# says WHAT N WANTED: the guide's program N, by 4 ranks.
# A line at a time: ranks share the pipe.
says() {
	awk -v wanted="$2" '/^```python$/ { n++; on = n == wanted; next } /^```$/ { on = 0 } on' "$guide" \
		>"$work/program.py"
	is "$1" "$("$COLL" run --keep-going -q -n 4 --no-prefix -- \
		env PYTHONUNBUFFERED= "$python" "$work/program.py" 2>&1 | sort)" \
		"$3"
}
says "the first program" 1 "rank 0 of 4: [ 6. 10. 14.]
rank 1 of 4: [ 6. 10. 14.]
rank 2 of 4: [ 6. 10. 14.]
rank 3 of 4: [ 6. 10. 14.]"
says "overlap" 2 "rank 0: own 332833500, sums [0, 4, 8, 12], data 64
rank 1: own 332833500, sums [0, 4, 8, 12], data 64
rank 2: own 332833500, sums [0, 4, 8, 12], data 64
rank 3: own 332833500, sums [0, 4, 8, 12], data 64"
says "messages" 3 "rank 0: 4 from 3, tag 7
rank 1: 1 from 0, tag 7
rank 2: 2 from 1, tag 7
rank 3: 3 from 2, tag 7"
says "groups and failures" 4 "rank 0: half 2
rank 0: lost 3, 3 go on
rank 1: half 4
rank 1: lost 3, 3 go on
rank 2: half 2
rank 2: lost 3, 3 go on
rank 3: half 4"
says "a reduction" 5 "rank 0: [6. 6.]
rank 1: [6. 6.]
rank 2: [6. 6.]
rank 3: [6. 6.]"
is "the guide has no other program" "$(grep -c '^```python$' "$guide")" 5

ok "stubs, documentation, numbers" quiet "$python" "$here/interface.py"
includes() {
	grep -h '#include.*coll' "$here"/../../bindings/python/src/*.[ch] |
		grep -v -e '"pycoll.h"' -e '<coll.h>'
}
ok "no header but coll.h" silent eval '! includes'
tap_end
