"""Builds the package: cargo builds the program, then maturin puts it into the wheel.

`maturin build` alone makes a wheel without the command `tickless`.
"""

import os
import pathlib
import shutil
import subprocess

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

_HERE = pathlib.Path(__file__).resolve().parent
# maturin installs the files of this folder as commands.
_SCRIPTS = _HERE / "tickless._native.data" / "scripts"


def _build_program() -> None:
    # With the features that maturin chooses, so that it finds every crate built.
    cargo = ["cargo", "build", "--release", "--bin", "tickless"]
    features = ["--features", "pyo3/extension-module"]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", _HERE / "target")).absolute()
    subprocess.run([*cargo, "--locked", *features], cwd=_HERE, check=True)
    _SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / "release" / "tickless", _SCRIPTS)


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, object] | None = None,
    metadata_directory: str | None = None,
) -> str:
    _build_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, object] | None = None,
    metadata_directory: str | None = None,
) -> str:
    _build_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
