#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
# Every program of tests/vm on Debian's kernel 6.12.
exec "$(dirname "$0")/all" 6.12
