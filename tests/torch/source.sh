#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The backend's source distribution: pip compiles it against the torch that is installed, without a network, in an
# environment of its own, where two ranks use it. Some minutes.
. "${0%/*}/../lib/tap.sh"
root=$(realpath "${0%/*}/../..")
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset COLL_RANK COLL_CONFIG PYTHONPATH PIP_INDEX_URL
library=$(realpath "$BUILD")

"$python" -W ignore -c 'import torch' 2>/dev/null || {
	echo "1..0 # SKIP PyTorch is not installed; make deps-torch does it"
	exit
}
version=$(awk '/define COLL_VERSION_M/ { v = v dot $3; dot = "." } END { print v }' "$root/libcoll/coll.h")
ok "make torch-source" quiet sh "$root/bindings/torch/source.sh" "$python" "$work/source"
archive=$work/source/coll_torch-$version.tar.gz
ok "it has the library's version" test -e "$archive"
tar -tzf "$archive" >"$work/files"
for file in setup.py flags.py pyproject.toml README.md coll_torch/__init__.py src/module.cc src/engine.h; do
	ok "it has $file" grep -Fqx "coll_torch-$version/$file" "$work/files"
done
ok "... and all sources" test "$(grep -c '/src/.' "$work/files")" -eq "$(ls "$root"/bindings/torch/src/* | wc -l)"

if ! "$python" -m venv --system-site-packages "$work/venv" >"$work/said" 2>&1; then
	skip "in an environment of its own" "python3-venv is not installed; make deps does it"
	tap_end
	exit
fi
python=$work/venv/bin/python
install() {	# how libcoll is found where it is not installed
	COLL_CFLAGS="-I$root/libcoll -I$root/uapi" COLL_LIBS="-L$library -lcoll" CFLAGS=-O0 "$python" -m pip install \
		--no-index --no-build-isolation --disable-pip-version-check --no-cache-dir "$archive"
}
ok "pip compiles and installs it, without an index" quiet install
cat >"$work/sum.py" <<'E'
import os
import sys

import coll_torch
import torch
import torch.distributed as dist

assert coll_torch.__file__.startswith(sys.prefix), coll_torch.__file__
rank = int(os.environ["COLL_RANK"])
dist.init_process_group("coll", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
total = torch.tensor([1.0, rank])
dist.all_reduce(total)
os.write(1, f"rank {rank}: {total.tolist()}\n".encode())
E
is "two ranks have the sum" "$(LD_LIBRARY_PATH=$library "$COLL" run -q -n 2 --no-prefix -- "$python" -W ignore \
	"$work/sum.py" "$work/store" 2>&1 | sort)" "rank 0: [2.0, 1.0]
rank 1: [2.0, 1.0]"
ok "pip removes it" quiet "$python" -m pip uninstall --disable-pip-version-check -qy coll_torch
ok "... whole" silent eval '! find "$work/venv" -path "*site-packages/coll_torch*" | grep .'
tap_end
