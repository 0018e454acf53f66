# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""The extension module; all else is in pyproject.toml.

libcoll is found by pkg-config, or by COLL_CFLAGS and COLL_LIBS in the environment. One wheel
serves Python 3.11 and later: the module uses the stable ABI.
"""
import glob
import os
import shlex
import subprocess

from setuptools import Extension, setup


def flags(variable, option):
    text = os.environ.get(variable)
    if text is None:
        text = subprocess.run(["pkg-config", option, "libcoll"], check=True,
                              capture_output=True, text=True).stdout
    return shlex.split(text)


setup(
    ext_modules=[Extension(
        "coll._coll",
        sorted(glob.glob("src/*.c")),
        depends=["src/pycoll.h"],
        extra_compile_args=["-std=gnu11", "-D_GNU_SOURCE", "-fvisibility=hidden",
                            *flags("COLL_CFLAGS", "--cflags")],
        extra_link_args=flags("COLL_LIBS", "--libs"),
        py_limited_api=True,
    )],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
