#!/usr/bin/env bash
# Builds a program with panic = "abort", which a test cannot use, and checks the documented
# behaviour: timers fire, and a callback that panics aborts the process; the panic is neither caught
# nor reported.
. "$(dirname "$0")/lib.sh"

program=target/abort
mkdir -p "$program/src"
cat >"$program/Cargo.toml" <<'TOML'
[package]
name = "abort"
version = "0.0.0"
edition = "2024"

[dependencies]
tickless = { path = "../../timers/tickless" }

[profile.dev]
panic = "abort"
debug = false
incremental = false

[workspace]
TOML
cat >"$program/src/main.rs" <<'RUST'
use std::sync::mpsc;
use std::time::Duration;
use tickless::Timers;

fn main() {
    let builder = Timers::builder().bases(1).on_panic(|_| println!("reported"));
    let timers = builder.start().expect("a driver is started");
    let (tell, told) = mpsc::channel();
    let good = timers.timeout(move |_| tell.send(()).expect("somebody listens"));
    good.start(Duration::from_millis(1)).expect("not shut down");
    told.recv().expect("it fires");
    println!("fired");
    let bad = timers.timeout(|_| panic!("on purpose"));
    bad.start(Duration::from_millis(1)).expect("not shut down");
    std::thread::sleep(Duration::from_secs(20));
    println!("went on");
}
RUST
cp Cargo.lock "$program/Cargo.lock"
cargo build --quiet --offline --manifest-path "$program/Cargo.toml" --target-dir target
status=0
said=$(ulimit -c 0 && target/debug/abort 2>/dev/null) || status=$?
# 134 is 128 + SIGABRT.
if [ "$status" -ne 134 ] || [ "$said" != fired ]; then
  echo "the program printed '$said' and ended with status $status; expected 'fired' and 134" >&2
  exit 1
fi
echo "a callback's panic aborts a program that is built with panic = abort"
