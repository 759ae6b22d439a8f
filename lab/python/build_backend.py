"""Builds the package: cargo builds the program, then maturin puts it into the wheel.

`maturin build` alone makes a wheel without the command `tickless`.
"""

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
    workspace = _HERE.parent
    # A source distribution has only what the library needs.
    if not (workspace / "crates" / "tickless-cli").is_dir():
        return
    cargo = ["cargo", "build", "--release", "--package", "tickless-cli"]
    target = _HERE / "target"
    subprocess.run([*cargo, "--locked", "--target-dir", str(target)], cwd=workspace, check=True)
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
