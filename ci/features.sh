#!/usr/bin/env bash
# Checks the library with each optional feature alone, and runs the tests that need features with
# all of them. The other tests run with all features in ci/platforms.sh, with musl.
. "$(dirname "$0")/lib.sh"
need_component clippy
for feature in tracing metrics tokio-time tokio-test-util tls-descriptors; do
  cargo clippy --locked -p tickless --lib --features "$feature" -- -D warnings
done
cargo test --locked -p tickless --all-features --lib --test observing --test tokio_time

# A program that uses the library from a Rust `dylib`: generic functions that it instantiates find
# all symbols.
crates=target/in-a-dylib
mkdir -p "$crates"/{dynamic,program}/src
cat >"$crates/Cargo.toml" <<'TOML'
[workspace]
members = ["dynamic", "program"]
resolver = "3"
TOML
cat >"$crates/dynamic/Cargo.toml" <<'TOML'
[package]
name = "dynamic"
version = "0.0.0"
edition = "2024"
[lib]
crate-type = ["dylib"]
[dependencies]
tickless = { path = "../../../timers/tickless" }
TOML
echo 'pub use tickless;' >"$crates/dynamic/src/lib.rs"
cat >"$crates/program/Cargo.toml" <<'TOML'
[package]
name = "program"
version = "0.0.0"
edition = "2024"
[dependencies]
dynamic = { path = "../dynamic" }
TOML
cat >"$crates/program/src/main.rs" <<'RUST'
use dynamic::tickless::{Timers, callback::Cancel};
use std::time::Duration;

fn main() {
    let timers = Timers::process().unwrap();
    let (fired, fires) = std::sync::mpsc::channel();
    let timer = timers.timeout(move |_| fired.send(()).unwrap());
    timer.start(Duration::from_secs(3600)).unwrap();
    assert_eq!(timer.cancel(), Cancel::Pending);
    timer.start(Duration::from_millis(1)).unwrap();
    fires.recv().unwrap();
}
RUST
cp Cargo.lock "$crates/"
RUSTFLAGS="-C prefer-dynamic ${RUSTFLAGS:-}" cargo run -q --release \
  --manifest-path "$crates/Cargo.toml" -p program
echo "a program that uses the library from a dylib: ok"
