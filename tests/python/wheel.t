#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# A wheel, built and installed without a network into an environment of its own, where two ranks
# use it, without NumPy. It finds the library of the node, or says that there is none.
. "${0%/*}/../lib/tap.sh"
root=${0%/*}/../..
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset COLL_RANK COLL_CONFIG PYTHONPATH PIP_INDEX_URL
library=$(realpath "$BUILD")

if ! "$python" -c 'import setuptools, wheel' 2>/dev/null || [ ! -e "$BUILD/python/coll/_coll.abi3.so" ]; then
	echo "1..0 # SKIP python3-dev, python3-setuptools or python3-wheel is not installed; make deps does it"
	exit
fi
version=$(awk '/define COLL_VERSION_M/ { v = v dot $3; dot = "." } END { print v }' "$root/libcoll/coll.h")
ok "make wheel" quiet env BUILD="$library" sh "$root/bindings/python/wheel.sh" "$python" "$work/wheels"
wheel=$(ls "$work"/wheels/*.whl)
is "one file, for all Pythons from 3.11 on, of the library's version" "${wheel##*/}" \
	"coll-$version-cp311-abi3-linux_$(uname -m).whl"
"$python" -m zipfile -l "$wheel" >"$work/files"
for file in coll/_coll.abi3.so coll/__init__.pyi coll/py.typed "coll-$version.dist-info/METADATA"; do
	ok "it has $file" grep -q "^$file " "$work/files"
done
ok "... and not the library" silent eval '! grep libcoll "$work/files"'

if ! "$python" -m venv "$work/venv" >"$work/said" 2>&1; then
	skip "in an environment of its own" "python3-venv is not installed; make deps does it"
	tap_end
	exit
fi
python=$work/venv/bin/python
ok "pip installs it, without an index" quiet "$python" -m pip install --no-index --disable-pip-version-check \
	--no-cache-dir --find-links "$work/wheels" coll
cat >"$work/sum.py" <<'E'
import array
import coll
import os
import sys

assert coll.__file__.startswith(sys.prefix), coll.__file__
with coll.open(deadline="60s") as context:
    world = context.world
    total = array.array("d", [0.0] * 3)
    world.allreduce(array.array("d", [1.0, 2.0, world.rank]), total)
    os.write(1, f"{coll.__version__}: rank {world.rank} of {world.size}: {total.tolist()}\n".encode())
E
is "two ranks have the sum" "$(LD_LIBRARY_PATH=$library "$COLL" run -q -n 2 --no-prefix -- "$python" \
	"$work/sum.py" 2>&1 | sort)" "$version: rank 0 of 2: [2.0, 4.0, 1.0]
$version: rank 1 of 2: [2.0, 4.0, 1.0]"
if ldconfig -p | grep -q 'libcoll\.so\.0'; then
	skip "without the library" "this machine has it installed"
else
	like "without the library, what to do is said" "$("$python" -c 'import coll' 2>&1)" \
		'^ImportError: coll: the library is not found .*LD_LIBRARY_PATH$'
fi
ok "pip removes it" quiet "$python" -m pip uninstall --disable-pip-version-check -qy coll
ok "... whole" silent eval '! find "$work/venv" -path "*site-packages/coll*" | grep .'
tap_end
