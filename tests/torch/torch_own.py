# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""usage: torch_own.py [--as coll|gloo|mpi] [--ranks 3] [--results FILE] [--list] [PATTERN...]

PyTorch's own tests of torch.distributed (torch.testing._internal.distributed), with the backend coll. Some
of them run only where the backend is named gloo or mpi: --as gloo gives them a backend coll of that name.
--results: what came out is added to FILE; a test that is there already, not skipped for its backend, does
not run again. Tests that do not apply, with the reason, are in torch_own.list. Prints TAP.
"""
import argparse
import fnmatch
import json
import os
import sys
import time
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as", dest="name", choices=["coll", "gloo", "mpi"], default="coll")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--results", default="/dev/null")
    parser.add_argument("--list", action="store_true", help="print the names and what becomes of them")
    parser.add_argument("patterns", nargs="*", default=["*"])
    return parser.parse_args()


# Torch asks the environment while it is imported.
if __name__ == "__main__":
    options = arguments()
    os.environ.update(BACKEND=options.name, WORLD_SIZE=str(options.ranks))
    os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "90")
    del sys.argv[1:]        # torch would read them

try:
    import expecttest
except ImportError:         # Debian 12 has none. No test here compares texts with accepted ones.
    expecttest = types.ModuleType("expecttest")
    expecttest.TestCase, expecttest.ACCEPT = unittest.TestCase, False
    sys.modules["expecttest"] = expecttest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.testing._internal import common_distributed

import coll_torch

torch.set_num_threads(1)
for feature in ["gpu", "ddp", "subgroup", "plugin"]:
    common_distributed.DistTestCases.backend_feature[feature].add("coll")
from torch.testing._internal.distributed import distributed_test

# In a profile operations are coll's, whatever name the backend has.
for table in ["PROFILING_SUPPORTED_BACKENDS", "SEND_RECV_PROFILING_SUPPORTED_BACKENDS"]:
    setattr(distributed_test, table, ["coll"])


try:                        # What it turns on cannot be imported by Python 3.11, nor is it in torch 2.
    from torch.nn.parallel import _replicated_tensor_ddp_utils
    _replicated_tensor_ddp_utils._set_ddp_with_replicated_tensor = lambda value: None
except ImportError:
    pass


def pose_as_gloo():
    """What torch makes for the name gloo is a group of coll; torch 2 asserts that it is of Gloo's class."""
    class Posing(type):
        def __instancecheck__(cls, it):
            return cls.made is not None and type(it) is cls.made

    class Gloo(metaclass=Posing):
        made = None

        def __new__(cls, store, rank, size, timeout=dist.default_pg_timeout):
            group = coll_torch._C.create(store, rank, size, timeout)
            cls.made = type(group)
            return group
    distributed_c10d.ProcessGroupGloo = Gloo


def pose_as_mpi():
    """Groups of the name mpi, which Debian's torch does not have."""
    for name in ["init_process_group", "new_group"]:
        def make(*args, function=getattr(dist, name), **kwargs):
            if kwargs.get("backend") == "mpi":
                kwargs["backend"] = "coll"
            return function(*args, **kwargs)
        setattr(dist, name, make)


{"coll": lambda: None, "gloo": pose_as_gloo, "mpi": pose_as_mpi}[os.environ["BACKEND"]]()


class Torch(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """As torch's test_distributed_spawn.py makes it; but ranks are forks, which need not import torch again."""

    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Result(unittest.TestResult):
    """TAP, and what torch said."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen        # name: [outcome, why]
        self.count = 0

    def say(self, name, outcome, why=""):
        self.count += 1
        if outcome != "skipped" or name not in self.seen:
            self.seen[name] = [outcome, why]
        print(f"{'not ok' if outcome == 'failed' else 'ok'} {self.count} - {name}"
              + (f" # SKIP {why}" if outcome in ("skipped", "inapplicable") else ""), flush=True)
        if outcome == "failed":
            print("".join(f"# {line}\n" for line in why.splitlines()[-40:]), end="", flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def addSuccess(self, test):
        self.say(test._testMethodName, "passed", f"{time.monotonic() - self.began:.0f} s")

    def addFailure(self, test, error):
        self.say(test._testMethodName, "failed", self._exc_info_to_string(error, test))

    addError = addFailure

    def addSkip(self, test, why):
        self.say(test._testMethodName, "skipped", why)


def inapplicable():
    """Pattern and reason, of those for this torch."""
    with open(os.path.join(HERE, "torch_own.list")) as lines:
        rules = [line.split(None, 2) for line in lines.read().splitlines() if line and line[0] != "#"]
    return [rule[1:] for rule in rules if fnmatch.fnmatch(torch.__version__, rule[0])]


def needs_gpu(function):
    """One of torch's decorators around it asks how many there are. It would start ranks to say so."""
    while function is not None:
        code = function.__code__
        if code.co_filename.endswith("common_distributed.py") and "device_count" in code.co_names:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def fate(name, rules):
    """What is known without running it, or None."""
    function = getattr(Torch, name)
    for pattern, why in rules:
        if fnmatch.fnmatch(name, pattern):
            return "inapplicable", why
    if needs_gpu(function) and not torch.cuda.device_count():
        return "skipped", "it needs a GPU"
    if getattr(function, "__unittest_skip__", False):
        return "skipped", function.__unittest_skip_why__
    return None


def earlier(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def test_main():
    rules, seen = inapplicable(), earlier(options.results)
    names = [name for name in unittest.TestLoader().getTestCaseNames(Torch)
             if any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns)
             and seen.get(name, ["skipped"])[0] == "skipped"]
    if options.list:
        for name in names:
            print(name, *(fate(name, rules) or ["runs"]))
        return
    result = Result(seen)
    Torch.setUpClass()
    for name in names:
        known = fate(name, rules)
        if known:
            result.say(name, *known)
        else:
            Torch(name).run(result)
        if options.results != "/dev/null":
            with open(options.results, "w") as file:
                json.dump(seen, file, indent=0, sort_keys=True)
    print(f"1..{result.count}")


if __name__ == "__main__":
    test_main()
