#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Connections that the kernel's TLS seals (protect=seal): by itself, and with the library's.
here=$(dirname "$0")
build=${BUILD:-build}
exec "$here/run" -p "$build/coll" -p "$build/tests/multi/groups" -p "$build/tests/multi/shared_connections" \
	-p "$build/tests/multi/every_collective" -p /bin/sh -p "$(command -v grep)" -p "$(command -v env)" \
	-k gf128mul -k ghash-generic -k crypto_null -k gcm -k tls -p "$here/seal_inside.sh" 6.12 seal_inside.sh
