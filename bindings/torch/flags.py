# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""What an extension of this Python's torch is compiled and linked with: by make torch, and by setup.py."""
import os

import torch
from torch.utils import cpp_extension


def macros():
    """Of the compiler. Those of pybind11 keep the type tables of this module and of torch together."""
    wanted = [("_GLIBCXX_USE_CXX11_ABI", str(int(torch._C._GLIBCXX_USE_CXX11_ABI))),
              ("TORCH_EXTENSION_NAME", "_C"), ("TORCH_API_INCLUDE_EXTENSION_H", None)]
    for name in ["COMPILER_TYPE", "STDLIB", "BUILD_ABI"]:
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        if value is not None:
            wanted.append((f"PYBIND11_{name}", f'"{value}"'))
    return wanted


def includes():
    return [word for path in cpp_extension.include_paths() for word in ("-isystem", path)]


def link():
    """Where Debian has the libraries no path to them is needed at run time."""
    words = []
    for path in cpp_extension.library_paths():
        words.append(f"-L{path}")
        if not os.path.islink(os.path.join(path, "libtorch.so")):
            words.append(f"-Wl,-rpath,{path}")
    return words + ["-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10"]


def defined(name, value):
    """As a word for the shell."""
    return f"-D{name}" if value is None else f"-D{name}={value}".replace('"', '\\"')


if __name__ == "__main__":
    print(*includes(), *(defined(*macro) for macro in macros()), *link())
