#!/usr/bin/env bash
# Checks that the library's crates compile with the oldest Rust that their manifests name.
. "$(dirname "$0")/lib.sh"

# have VERSION: sets $toolchain to a toolchain of that version, or fails.
have() {
  toolchain=''
  for name in "$1" "$1.0" $(rustup toolchain list | cut -d' ' -f1); do
    case $(rustc "+$name" --version 2>/dev/null) in
      "rustc $1"*) toolchain=$name && return ;;
    esac
  done
  if timeout 600 rustup toolchain install "$1" --profile minimal; then
    toolchain=$1
  else
    skip msrv "Rust $1 is neither installed nor available"
    return 1
  fi
}

# named MANIFEST: prints the manifest's rust-version.
named() {
  sed -n 's/^rust-version = "\(.*\)"/\1/p' "$1" | grep . ||
    { echo "$1 names no rust-version" >&2; return 1; }
}

version=$(named timers/tickless/Cargo.toml)
if have "$version"; then
  RUSTUP_TOOLCHAIN=$toolchain cargo check --locked --target-dir target/msrv \
    -p tickless-core -p tickless -p tickless-capi \
    --features tickless/tokio-time,tickless/tracing,tickless/metrics
  echo "the library builds with Rust $version"
fi

# Each adapter by itself, with no feature that another one or a test turns on. Their workspace has a
# version of its own; an adapter whose framework needs a later one names that version itself.
for manifest in timers/adapters/tickless-*/Cargo.toml; do
  adapter=$(basename "$(dirname "$manifest")")
  ! grep -q '^rust-version\.workspace = true' "$manifest" || manifest=timers/adapters/Cargo.toml
  version=$(named "$manifest")
  have "$version" || continue
  (cd timers/adapters && RUSTUP_TOOLCHAIN=$toolchain cargo check --locked -p "$adapter" --lib \
    --target-dir target/msrv)
  echo "$adapter builds with Rust $version"
done
