# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""What an extension of this Python's torch is compiled and linked with."""
import os

import torch
from torch.utils import cpp_extension

words = [f"-isystem {path}" for path in cpp_extension.include_paths()]
words.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
words.append("-DTORCH_EXTENSION_NAME=_C -DTORCH_API_INCLUDE_EXTENSION_H")
# What keeps the type tables of this module and of torch together.
for name in ["COMPILER_TYPE", "STDLIB", "BUILD_ABI"]:
    value = getattr(torch._C, f"_PYBIND11_{name}", None)
    if value is not None:
        words.append(f'-DPYBIND11_{name}=\\"{value}\\"')
for path in cpp_extension.library_paths():
    words.append(f"-L{path} -Wl,-rpath,{path}" if not os.path.islink(os.path.join(path, "libtorch.so"))
                 else f"-L{path}")
words.append("-ltorch_python -ltorch -ltorch_cpu -lc10")
print(" ".join(words))
