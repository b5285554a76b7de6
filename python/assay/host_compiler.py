"""Runs a C++ compiler on a text that nobody vouches for: confined as submissions are, but for the processes that a
compiler starts.

`host_compiler.py describe` prints where PyTorch and Python have their headers, as JSON, without importing PyTorch.
`host_compiler.py run SPEC` becomes the compiler: `SPEC` is a JSON file with `argv`, `readable` (folders), `private`
(the one folder that may be written to, and the working folder) and `limits` (see `confinement.limit`). Where the system
cannot confine it, it refuses with status 76 unless the specification has `trusted` (a text of Assay's own).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import sysconfig

UNCONFINED = 76


def describe():
    """Headers and libraries of this interpreter and its PyTorch."""
    spec = importlib.util.find_spec("torch")
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    if not folders:
        return {"missing": "no PyTorch"}
    torch = folders[0]
    version = {}
    with open(os.path.join(torch, "version.py"), encoding="utf-8") as f:
        exec(f.read(), version)
    include = [os.path.join(torch, "include"), os.path.join(torch, "include", "torch", "csrc", "api", "include")]
    python = sysconfig.get_paths()["include"]
    if not os.path.isfile(os.path.join(python, "Python.h")):
        return {"missing": "no headers of Python"}
    if not os.path.isfile(os.path.join(include[0], "ATen", "ATen.h")):
        return {"missing": "no headers of PyTorch"}
    return {
        "torch": version.get("__version__", "?"),
        "python": sys.version.split()[0],
        "python_include": python,
        "include": include,
        "library": os.path.join(torch, "lib"),
    }


def run(path):
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    from confinement import confine_compiler

    missing = confine_compiler(spec["readable"], spec["private"], spec["limits"])
    if missing and not spec.get("trusted"):
        sys.stderr.write("; ".join(missing) + "\n")
        sys.exit(UNCONFINED)
    os.chdir(spec["private"])
    argv = spec["argv"]
    path = os.pathsep.join(dict.fromkeys([os.path.dirname(argv[0]), "/usr/bin", "/bin"]))
    environment = {"PATH": path, "TMPDIR": spec["private"], "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    os.execve(argv[0], argv, environment)


if __name__ == "__main__":
    if sys.argv[1] == "describe":
        print(json.dumps(describe()))
    else:
        run(sys.argv[2])
