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

# The workspace of the adapters has its own version. An adapter whose framework needs a later one
# names that version itself.
theirs=$(named timers/adapters/Cargo.toml)
others=()
for manifest in timers/adapters/tickless-*/Cargo.toml; do
  grep -q '^rust-version\.workspace = true' "$manifest" && continue
  adapter=$(basename "$(dirname "$manifest")")
  others+=(--exclude "$adapter")
  own=$(named "$manifest")
  have "$own" || continue
  (cd timers/adapters && RUSTUP_TOOLCHAIN=$toolchain cargo check --locked -p "$adapter" --lib \
    --target-dir target/msrv)
  echo "$adapter builds with Rust $own"
done
if have "$theirs"; then
  (cd timers/adapters && RUSTUP_TOOLCHAIN=$toolchain cargo check --locked --workspace --lib \
    "${others[@]}" --target-dir target/msrv)
  echo "the adapters build with Rust $theirs"
fi
