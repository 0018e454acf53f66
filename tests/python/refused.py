# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""For tests of what is refused."""
import re


def refused(kind, pattern, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert re.search(pattern, str(error)), f"{error!r} is not like {pattern!r}"
        return error
    except Exception as error:
        raise AssertionError(f"{type(error)} {error}, wanted {kind}") from error
    raise AssertionError(f"not refused: {pattern}")
