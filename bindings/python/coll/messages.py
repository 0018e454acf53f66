# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""Messages between two ranks: what recv() asks for and returns."""
import collections as _collections

ANY_SOURCE = -1
ANY_TAG = -1


class Received(_collections.namedtuple("Received", ["source", "tag", "count"])):
    """A message: its rank, its tag, and how many elements it had."""

    __slots__ = ()
