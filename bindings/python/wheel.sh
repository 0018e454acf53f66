#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build bindings/python/wheel.sh PYTHON FOLDER
#
# Makes a wheel in FOLDER, by the setuptools that is installed, without a network. It is linked
# with the libcoll.so of BUILD; where it is installed that library must be found.
set -e
: "${BUILD:?}" "${2:?usage: wheel.sh PYTHON FOLDER}"
source=$(realpath "$(dirname "$0")")
python=$1
mkdir -p "$2"
folder=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$source" "$work/python"
cd "$work/python"
rm -rf coll/__pycache__
COLL_CFLAGS="-I$source/../../libcoll -I$source/../../uapi" COLL_LIBS="-L$BUILD -lcoll" \
	"$python" -c 'import sys
from setuptools import build_meta
print(build_meta.build_wheel(sys.argv[1]), file=sys.stderr)' "$folder" >"$work/log" 2>"$work/said" || {
	cat "$work/log" "$work/said" >&2
	exit 1
}
ls "$folder"/*.whl
