# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
from typing import NamedTuple

ANY_SOURCE: int
ANY_TAG: int

class Received(NamedTuple):
    source: int
    tag: int
    count: int
