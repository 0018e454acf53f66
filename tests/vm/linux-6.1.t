#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# The programs of tests/vm on Debian's kernel 6.1, but for one that make check-vm runs there.
exec "$(dirname "$0")/all" -q 6.1
