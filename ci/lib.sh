# Sourced by every script here: strict mode, the repository's root, the pinned toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Selects the toolchain that rust-toolchain.toml pins, under any name: a machine may have that
# version as `stable`, and no access to a download. Automatic installation is off, because rustup
# would otherwise install toolchains during the search.
use_pinned_toolchain() {
  local version toolchain
  [ -z "${RUSTUP_TOOLCHAIN:-}" ] || return 0
  version=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
  export RUSTUP_AUTO_INSTALL=0
  for toolchain in "$version" $(rustup toolchain list | cut -d' ' -f1); do
    case $(rustc "+$toolchain" --version 2>/dev/null) in
      "rustc $version "*) export RUSTUP_TOOLCHAIN=$toolchain && return 0 ;;
    esac
  done
  timeout 600 rustup toolchain install "$version" --profile minimal || {
    echo "Rust $version is neither installed nor available; install it with rustup" >&2
    return 1
  }
  export RUSTUP_TOOLCHAIN=$version
}

# Sets $packages: arguments that select the crates of the houses that ci/gate checks; with none of
# them, the arguments $@.
select_packages() {
  local house manifest
  packages=("$@")
  [ -z "${CI_HOUSES:-}" ] || packages=()
  for house in ${CI_HOUSES:-}; do
    for manifest in "$house"/tickless*/Cargo.toml; do
      packages+=(-p "$(basename "$(dirname "$manifest")")")
    done
  done
}

# Installs a component of the toolchain if it is missing.
need_component() {
  rustup component list --installed | grep "^$1" >/dev/null ||
    timeout 600 rustup component add "$1"
}

# Sets $NIGHTLY to a nightly toolchain with the components $@: the version that is known to work
# with Miri and sanitizers, which it installs if it may, or any installed one.
use_nightly() {
  local component wanted=()
  for component in "$@"; do wanted+=(-c "$component"); done
  for NIGHTLY in "$NIGHTLY_TRIED" nightly; do
    has_components "$NIGHTLY" "$@" && return 0
    timeout 900 rustup toolchain install "$NIGHTLY" --profile minimal "${wanted[@]}" || continue
    has_components "$NIGHTLY" "$@" && return 0
  done
  return 1
}

# Makes a virtual environment with the packages $@ and the wheel, which contains the program. Builds
# both with the profile $PYTHON_PROFILE. Sets $venv, which is removed at exit, and $bin.
fresh_python() {
  venv=$(mktemp -d)
  bin=$venv/bin
  trap 'rm -rf "$venv"' EXIT
  python3 -m venv "$venv"
  "$bin/pip" install -q 'maturin>=1.9,<2' "$@"
  (cd lab/python &&
    "$bin/maturin" build --locked -q --profile "${PYTHON_PROFILE:-dev}" --out "$venv/wheels")
  "$bin/pip" install -q --no-index --no-deps "$venv"/wheels/tickless-*.whl
}

NIGHTLY_TRIED=nightly-2026-05-20

has_components() {
  local toolchain=$1 installed component
  shift
  installed=$(rustup component list --installed --toolchain "$toolchain" 2>/dev/null) || return 1
  for component in "$@"; do grep -q "^$component" <<<"$installed" || return 1; done
}

# Installs Debian packages, if `ci/gate --install` allows it. A check that lacks them afterwards
# says what it leaves out. Checks run beside each other, and apt does not wait for another one.
install_packages() {
  [ -n "${CI_INSTALL:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  mkdir -p target
  {
    flock 9
    timeout 300 apt-get update && timeout 600 apt-get install -y --no-install-recommends "$@"
  } >/dev/null 2>&1 9>target/apt.lock || true
}

# Reports that a check did not run, and the reason. .ci/run counts and repeats these lines.
skip() {
  echo "SKIPPED: $1: $2" | tee -a "${CI_SKIPPED:-/dev/null}"
}

use_pinned_toolchain
