# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
"""The stubs name what the module has; all of it is documented; numbers are those of the headers."""
import ast
import inspect
import os
import re

import coll

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def arguments(function):
    """Names of a stub's arguments, without self."""
    args = function.args
    return [a.arg for a in args.posonlyargs + args.args + args.kwonlyargs if a.arg != "self"]


def public(names):
    return {name for name in names if not name.startswith("_")} | \
        {name for name in names if name in ("__enter__", "__exit__")}


with open(os.path.join(os.path.dirname(coll.__file__), "__init__.pyi")) as file:
    stubs = ast.parse(file.read()).body
for stub in stubs:
    if isinstance(stub, ast.ClassDef):
        have = getattr(coll, stub.name)
        members = {m.name: m for m in stub.body if isinstance(m, ast.FunctionDef)}
        if not issubclass(have, int):
            assert public(vars(have)) == public(members), \
                (stub.name, public(vars(have)) ^ public(members))
        for name, member in members.items():
            attribute = getattr(have, name)
            assert name.startswith("__") or attribute.__doc__, f"{stub.name}.{name}: no text"
            if callable(attribute) and not name.startswith("__") and name != "set":
                try:
                    signature = inspect.signature(attribute)
                except ValueError:
                    raise AssertionError(f"{stub.name}.{name}: no signature")
                got = [p for p in signature.parameters if p != "self"]
                assert got == arguments(member), f"{stub.name}.{name}: {got}, {arguments(member)}"
        assert have.__doc__, stub.name
    elif isinstance(stub, ast.FunctionDef):
        assert getattr(coll, stub.name).__doc__, stub.name
names = {s.name for s in stubs if hasattr(s, "name")} | \
    {s.target.id for s in stubs if isinstance(s, ast.AnnAssign)} | \
    {a.asname for s in stubs if isinstance(s, ast.ImportFrom) for a in s.names if a.asname}
assert set(coll.__all__) - names == set(), set(coll.__all__) - names
assert all(hasattr(coll, name) for name in coll.__all__)

# Enumerators count from 0 in the order of the header.
with open(os.path.join(TOP, "uapi", "coll_types.h")) as file:
    header = file.read()
for have, last in [(coll.Type, "COLL_TYPES"), (coll.ReduceOp, "COLL_REDUCTIONS")]:
    body = re.search(r"enum coll_\w+ \{([^}]*?)\b" + last, re.sub(r"/\*.*?\*/", "", header, flags=re.S))
    wanted = re.findall(r"COLL_(\w+)", body.group(1))
    assert [m.name for m in have] == wanted, (list(have), wanted)
    assert [m.value for m in have] == list(range(len(wanted)))

# Each function of coll.h is reached.
with open(os.path.join(TOP, "libcoll", "coll.h")) as file:
    functions = set(re.findall(r"^[a-z][\w ]*[ *](coll_\w+)\(", file.read(), re.M)) - {"coll_function"}
text = ""
source = os.path.join(TOP, "bindings", "python", "src")
for name in sorted(os.listdir(source)):
    with open(os.path.join(source, name)) as file:
        text += file.read()
forms = {f"coll_{p}{n}{s}" for n in re.findall(r"(?:ISSUE|COLLECTIVE)\((\w+),", text)
         for p, s in [("", ""), ("i", ""), ("", "_init")]}
missing = {f for f in functions - forms if f + "(" not in text and f + "," not in text
           and f + ")" not in text}
# Served by another: waits by tests that signals interrupt; the number of a version by its text.
served = {"coll_run_waitall", "coll_run_waitany", "coll_run_testall", "coll_run_testany",
          "coll_send", "coll_recv", "coll_version_number"}
# For C alone: a job whose store is functions of the program; memory for buffers.
unbound = {"coll_open_with", "coll_alloc", "coll_free_memory"}
assert missing == served | unbound, missing

# Exceptions survive a pickle.
import pickle
for kind in [coll.Error, coll.RankDiedError, coll.DeadlineError]:
    error = pickle.loads(pickle.dumps(kind(104, "barrier", "text", 3, [3])))
    assert (error.errno, error.rank, error.failed, str(error)) == (104, 3, (3,), "text")
assert pickle.loads(pickle.dumps(coll.IN_PLACE)) is coll.IN_PLACE
