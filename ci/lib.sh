# Sourced by every script here: strict mode, the repository's root, the pinned toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Selects the toolchain that rust-toolchain.toml pins. A machine may have that version under
# another name (`stable`, say) and be unable to download it again: that one is as good.
# Looking must not install anything, which rustup does by itself where it is allowed to.
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
    echo "Rust $version is not installed and cannot be had; install it with rustup" >&2
    return 1
  }
  export RUSTUP_TOOLCHAIN=$version
}

# Makes sure the toolchain has a component; asks the network only where it is missing.
need_component() {
  rustup component list --installed | grep "^$1" >/dev/null ||
    timeout 600 rustup component add "$1"
}

# Says that a check did not run, and why. .ci/run counts and repeats these lines.
skip() {
  echo "SKIPPED: $1: $2" | tee -a "${CI_SKIPPED:-/dev/null}"
}

use_pinned_toolchain
