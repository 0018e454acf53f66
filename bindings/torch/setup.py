# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""The extension module, for the torch of this Python; all else is in pyproject.toml.

libcoll is found by pkg-config, or by COLL_CFLAGS and COLL_LIBS in the environment. A wheel is for one
version of torch, as torch's C++ has no stable ABI: so it is compiled where it is installed, without
build isolation, which would compile it against another torch.
"""
import glob
import os
import shlex
import subprocess
import sys

from setuptools import Extension, setup

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def flags(variable, option):
    text = os.environ.get(variable)
    if text is None:
        text = subprocess.run(["pkg-config", option, "libcoll"], check=True,
                              capture_output=True, text=True).stdout
    return shlex.split(text)


def extensions():
    """None for a source distribution, which needs no torch and no libcoll."""
    if "sdist" in sys.argv:
        return []
    try:
        from flags import includes, link, macros
    except ImportError as error:
        sys.exit(f"coll_torch: {error}: it is compiled against the torch that is installed; valid: pip install"
                 " --no-build-isolation, in a Python that has torch")
    return [Extension(
        "coll_torch._C",
        sorted(glob.glob("src/*.cc")),
        language="c++",
        define_macros=macros(),
        extra_compile_args=["-std=gnu++17", "-fvisibility=hidden", *includes(), *flags("COLL_CFLAGS", "--cflags")],
        extra_link_args=[*flags("COLL_LIBS", "--libs"), *link()],
    )]


setup(ext_modules=extensions())
