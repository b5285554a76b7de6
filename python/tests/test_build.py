"""How the package is built and installed: the command in its wheel, and source distributions that can build it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import assay

ROOT = Path(__file__).resolve().parents[2]
BACKEND = "python/backend/assay_build.py"


def backend(root):
    spec = importlib.util.spec_from_file_location("assay_build", root / BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_sdist(root, out):
    """Builds a source distribution as a front end does: in a process of its own, in the folder of `pyproject.toml`."""
    code = f"import sys; sys.path.insert(0, 'backend'); import assay_build; assay_build.build_sdist({str(out)!r})"
    out.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # where `maturin` is
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=root / "python",
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": path},
    )
    return next(out.iterdir())


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build_sdist(ROOT, tmp_path_factory.mktemp("sdist") / "out")


def test_the_installed_package_brings_its_command():
    distribution = importlib.metadata.distribution("assay-kernels")
    assert distribution.version == assay.__version__
    commands = [Path(distribution.locate_file(f)).resolve() for f in distribution.files if Path(f).name == "assay"]
    assert Path(assay.find_command()).resolve() in commands
    said = subprocess.run([assay.find_command(), "--version"], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"assay {assay.__version__}"
    assert distribution.requires is None or all("extra ==" in r for r in distribution.requires)
    assert {"LICENSE-APACHE", "LICENSE-MIT"} <= {Path(f).name for f in distribution.files}


def test_a_source_distribution_has_every_file_that_the_command_is_built_from(sdist):
    listing = ROOT / "target" / "release" / "assay.d"
    if not listing.exists():
        pytest.skip("no target/release/assay.d: the command was built elsewhere")
    # Make's syntax: a target, a colon, files with their spaces escaped.
    words = re.split(r"(?<!\\) ", listing.read_text(encoding="utf-8").split(": ", 1)[1].strip())
    sources = [Path(w.replace("\\ ", " ")).resolve() for w in words]
    # Build scripts name folders as well.
    inside = [p for p in sources if p.is_file() and ROOT in p.parents and ROOT / "target" not in p.parents]
    ours = {str(p.relative_to(ROOT)) for p in inside}
    assert {"crates/assay/src/main.rs", "suites/strongest.toml", "problems/level1/23_softmax/kernel.cu"} <= ours
    with tarfile.open(sdist) as tar:
        there = {name.split("/", 1)[1] for name in tar.getnames()}
    assert ours <= there
    assert {"pyproject.toml", "PKG-INFO", "Cargo.toml", "Cargo.lock", "LICENSE-MIT", BACKEND} <= there


def test_a_source_distribution_makes_itself_again_to_the_byte(sdist, tmp_path):
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path, filter="data")
    inside = next(tmp_path.iterdir())
    # There is no git there to say what is source.
    assert build_sdist(inside, tmp_path / "out").read_bytes() == sdist.read_bytes()
    text = (inside / "pyproject.toml").read_text(encoding="utf-8")
    for _, path in re.findall(r'^(backend-path|readme|manifest-path|python-source) = \W*"?([^"\]]+)', text, re.M):
        assert (inside / path).exists(), path


def test_elsewhere_than_on_linux_the_command_is_built_without_the_device(monkeypatch):
    monkeypatch.delenv("MATURIN_PEP517_ARGS", raising=False)
    backend(ROOT)
    assert "MATURIN_PEP517_ARGS" not in os.environ
    monkeypatch.setattr(sys, "platform", "darwin")
    backend(ROOT)
    assert os.environ["MATURIN_PEP517_ARGS"] == "--no-default-features"
    monkeypatch.delenv("MATURIN_PEP517_ARGS")
