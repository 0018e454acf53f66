#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#
# usage: BUILD=build tests/torch/trixie.sh
#
# The backend of torch.distributed with PyTorch 2.6: Debian 13's (tests/torch/trixie). It is built there in
# $BUILD/trixie, and tested as on Debian 12. As root, with a mirror in reach; half an hour, the first time more.
. "${0%/*}/../lib/tap.sh"
here=${0%/*}
BUILD=$(realpath -m "$BUILD")/trixie
export BUILD
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP it needs root"; exit; }

# What it says is shown; of a test's lines those that count failures do not stand for this script.
inside() {
	COLL_TRIXIE_TIME=${time:-3000} "$here/trixie" "$@" 2>&1 | sed 's/^/# /'
}
passes() {
	inside "$@" >"$BUILD/torch.log"
	grep -E '^# (not )?ok|^# 1\.\.' "$BUILD/torch.log"
	grep -Eq '^# 1\.\.[1-9]' "$BUILD/torch.log" && ! grep -q '^# not ok' "$BUILD/torch.log" && return
	tail -60 "$BUILD/torch.log"
	return 1
}

ok "a Debian 13 with PyTorch" quiet "$here/trixie"
like "it is PyTorch 2.6" "$(inside python3 -W ignore -c 'import torch; print(torch.__version__)')" '^# 2\.6'
ok "the library, its tool and the backend are built" quiet env BUILD="$BUILD" "$here/trixie" \
	make -j2 MPIS= BUILD="$BUILD" "$BUILD/coll" "$BUILD/libexec/coll/coll-store" torch
ok "the backend's tests" passes sh tests/torch/backend.sh
ok "torch's own tests" passes sh tests/torch/torch_own.sh
tap_end
