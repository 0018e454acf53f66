#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: bindings/torch/source.sh PYTHON FOLDER
#
# Makes the source distribution of coll_torch in FOLDER, by the setuptools that is installed, without a network.
set -e
: "${2:?usage: source.sh PYTHON FOLDER}"
source=$(realpath "$(dirname "$0")")
python=$1
mkdir -p "$2"
folder=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$source" "$work/torch"
cd "$work/torch"
rm -rf coll_torch/__pycache__
"$python" setup.py -q sdist -d "$folder" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
ls "$folder"/coll_torch-*.tar.gz
