#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# collnoise and colld with the module, on Debian's kernel 6.12.
here=$(dirname "$0")
exec "$here/run" -p "${BUILD:-build}/collnoise" -p "${BUILD:-build}/colld" -p /bin/sh -p "$(command -v jq)" \
	-p "$(command -v sleep)" -p "$(command -v cat)" -p "$(command -v setsid)" \
	-p "$here/collnoise_inside.sh" 6.12 collnoise_inside.sh
