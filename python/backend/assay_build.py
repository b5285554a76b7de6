"""The build backend of this package: maturin, and two things that it leaves open.

- A source distribution holds what the build of the command reads, much of it outside this folder: the workspace,
  the catalogue, what the crates include. It is the repository's own tree with `pyproject.toml` at its top, so that it
  builds as a checkout does. `rust-toolchain.toml` stays out: the crates say which Rust they need.
- Where there is no NVRTC (other systems than Linux) the command is built without the CPU device; boundary sweeps, the
  guard and the metamorphic check are what it has there.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maturin

if not sys.platform.startswith("linux"):
    os.environ.setdefault("MATURIN_PEP517_ARGS", "--no-default-features")

build_editable = maturin.build_editable
build_wheel = maturin.build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel

ROOT = Path(__file__).resolve().parents[2]
# What a source distribution has of the repository.
TOP = ("Cargo.lock", "Cargo.toml", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "SOURCES.md")
FOLDERS = ("crates", "docs", "problems", "protocols", "python", "suites", "sweeps", "testdata", "xtask")
NO_SOURCE = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "target", "venv"}
# Lines of pyproject.toml that name paths, as they stand here and at the top of a source distribution.
PATHS = {
    'backend-path = ["backend"]': 'backend-path = ["python/backend"]',
    'readme = "README.md"': 'readme = "python/README.md"',
    'manifest-path = "../crates/assay/Cargo.toml"': 'manifest-path = "crates/assay/Cargo.toml"',
    'python-source = "."': 'python-source = "python"',
}
# 1980-01-01, the first day that a zip file, and so a wheel, can name.
EPOCH = 315532800


def get_requires_for_build_sdist(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    return []


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Writes the source distribution; the same tree gives the same bytes."""
    name = f"assay_kernels-{_version()}"
    with tempfile.TemporaryDirectory() as scratch:
        info = maturin.prepare_metadata_for_build_wheel(scratch, config_settings)
        metadata = (Path(scratch) / info / "METADATA").read_bytes()
    date = int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))
    archive = Path(sdist_directory) / f"{name}.tar.gz"
    unpacked = io.BytesIO()
    with tarfile.open(fileobj=unpacked, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def put(path: str, data: bytes, executable: bool = False) -> None:
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime, entry.mode = len(data), date, 0o755 if executable else 0o644
            tar.addfile(entry, io.BytesIO(data))

        put("PKG-INFO", metadata)
        put("pyproject.toml", _pyproject())
        for path in files():
            put(path, (ROOT / path).read_bytes(), os.access(ROOT / path, os.X_OK))
    archive.write_bytes(gzip.compress(unpacked.getvalue(), mtime=date))
    return archive.name


def files() -> list[str]:
    """Every file of a source distribution, relative to the repository, in order."""
    try:
        # What git ignores or does not know is nobody's source.
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *TOP, *FOLDERS]
        listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
        found = [path for path in listed if path]
    except (OSError, subprocess.CalledProcessError):
        found = []
    # Not a checkout: a source distribution, unpacked, has what it has.
    found = found or [*TOP, *(str(p.relative_to(ROOT)) for folder in FOLDERS for p in (ROOT / folder).rglob("*"))]
    return sorted(p for p in set(found) if (ROOT / p).is_file() and not NO_SOURCE & set(Path(p).parts))


def _version() -> str:
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"no `version` first in `[workspace.package]` of `{ROOT / 'Cargo.toml'}`")
    return found[1]


def _pyproject() -> bytes:
    text = (ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8")
    for here, there in PATHS.items():
        if text.count(here) != 1:
            raise SystemExit(f"`{here}` must stand once in `python/pyproject.toml`")
        text = text.replace(here, there)
    return text.encode()
