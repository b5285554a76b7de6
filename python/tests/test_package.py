"""The package as it is installed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import assay

PACKAGE = Path(assay.__file__).parent
CARGO = Path(__file__).resolve().parents[2] / "Cargo.toml"


def test_importing_the_package_imports_no_framework():
    code = "import sys, assay; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_the_workspaces():
    version = re.search(r'^version = "(.+)"$', CARGO.read_text(), re.MULTILINE)
    assert assay.__version__ == version.group(1)


def test_types_are_announced():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda p: p.name)
def test_every_file_is_python_3_9(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


# Files that are written into a folder together with a worker.
BESIDE = {"worker_protocol", "file_numbers", "torch_export", "torch_extents", "benchmark_file"}


@pytest.mark.parametrize("worker", ["sweep_worker", "torch_worker", *sorted(BESIDE)])
def test_a_worker_needs_the_standard_library_its_protocol_and_torch_alone(worker):
    tree = ast.parse(Path(find_spec(f"assay.{worker}").origin).read_text(encoding="utf-8"))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(node.module.split(".")[0])
    # What only reads text needs no PyTorch.
    assert ("torch" in modules) == (worker != "file_numbers")
    if sys.version_info >= (3, 10):
        assert modules - {"torch"} - BESIDE <= sys.stdlib_module_names
