#!/usr/bin/env bash
# Checks that the library's crates compile with the oldest Rust that their manifests name.
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' crates/tickless/Cargo.toml)
[ -n "$version" ] || { echo "crates/tickless/Cargo.toml names no rust-version" >&2; exit 1; }
toolchain=''
for name in "$version" "$version.0" $(rustup toolchain list | cut -d' ' -f1); do
  case $(rustc "+$name" --version 2>/dev/null) in
    "rustc $version"*) toolchain=$name && break ;;
  esac
done
if [ -z "$toolchain" ]; then
  timeout 600 rustup toolchain install "$version" --profile minimal || {
    skip msrv "Rust $version is not installed and cannot be had"
    exit 0
  }
  toolchain=$version
fi
RUSTUP_TOOLCHAIN=$toolchain cargo check --locked --target-dir target/msrv \
  -p tickless-core -p tickless-clock -p tickless --features \
  tickless/tokio-time,tickless/stream,tickless/tracing,tickless/metrics
echo "Rust $version is enough"
