#!/usr/bin/env bash
# Checks the adapters for hyper, quinn and tower against the real frameworks: format, lints, tests,
# and the examples, which check their own results. The adapters are a separate workspace, so that
# tests of the library do not build the frameworks. ci/msrv.sh checks each adapter by itself.
. "$(dirname "$0")/lib.sh"
need_component clippy
cd timers/adapters
export CARGO_TARGET_DIR=$PWD/target

cargo fmt --all --check -- --config-path ../../rustfmt.toml
# Clippy in place of the compiler: the frameworks are compiled once, for lints and tests.
RUSTC_WORKSPACE_WRAPPER=$(rustup which clippy-driver) RUSTFLAGS='-D warnings' \
  timeout 900 cargo test --locked -q --workspace

# The examples, which the tests have built.
built=${CARGO_TARGET_DIR:-target}/debug/examples
timeout 300 "$built/graceful_server" --self-test
timeout 300 "$built/quic_echo"

# A program that also uses an incompatible version of a framework is refused, with an error that
# names both versions.
other=target/two-versions
mkdir -p "$other/src"
cat >"$other/Cargo.toml" <<'TOML'
[workspace]
[package]
name = "two-versions"
version = "0.0.0"
edition = "2024"
[dependencies]
tickless-quinn = { path = "../../tickless-quinn" }
quinn = { version = "0.10", default-features = false }
[profile.dev]
debug = "line-tables-only"
incremental = false
[profile.dev.package."*"]
debug = false
TOML
cat >"$other/src/main.rs" <<'RUST'
fn main() {
    fn takes<R: quinn::Runtime>() {}
    takes::<tickless_quinn::TicklessRuntime>();
}
RUST
# With the profile and the versions of the adapters, whose crates are compiled already.
cp Cargo.lock "$other/"
if cargo check -q --manifest-path "$other/Cargo.toml" 2>target/refused; then
  echo "another version of quinn is accepted" >&2
  exit 1
fi
if grep -q 'failed to \(get\|download\|load\)' target/refused; then
  skip adapters "quinn 0.10 cannot be had"
  exit 0
fi
grep -q 'multiple different versions of crate `quinn`' target/refused ||
  { cat target/refused >&2; exit 1; }
