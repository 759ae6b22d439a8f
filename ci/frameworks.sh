#!/usr/bin/env bash
# Runs the test suites of quinn, tower-http and hyper on our timers, which tokio's runtime drives.
# It uses copies of their sources in a temporary folder. Each test that passes with the framework's
# own timers must pass with ours. The packages of quinn and tower-http contain their suites. hyper's
# suite is only in its repository: HYPER names a clone of it, or its address. A framework whose
# sources are unavailable is skipped.
#
# Each suite also runs with the adapter broken, and must then fail: otherwise it would not depend on
# the timers.
. "$(dirname "$0")/lib.sh"
repository=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$repository/timers/adapters/target/frameworks

# run_suite NAME FOLDER ARGUMENTS...: runs the tests, and lists those that passed in $work/NAME.
run_suite() {
  local name=$1 folder=$2
  shift 2
  timeout 1200 cargo test --no-fail-fast --manifest-path "$folder/Cargo.toml" "$@" \
    >"$work/$name.log" 2>&1 || true
  sed -n 's/^test \(.*\) \.\.\. ok$/\1/p' "$work/$name.log" | sort >"$work/$name"
  [ -s "$work/$name" ] || { tail -n 60 "$work/$name.log" >&2; return 1; }
}

# compare NAME: fails if a test passes only with the framework's own timers.
compare() {
  local lost
  lost=$(comm -23 "$work/$1-theirs" "$work/$1-ours")
  [ -z "$lost" ] || {
    cat "$work/$1-ours.log" >&2
    echo "fails only with our timers: $lost" >&2
    return 1
  }
  sed -n 's/^test \(.*\) \.\.\. FAILED$/fails with both timers: \1/p' "$work/$1-ours.log"
  echo "$1: $(wc -l <"$work/$1-ours") passed, $(wc -l <"$work/$1-theirs") on its own timers"
}

# must_fail NAME FOLDER ARGUMENTS...: checks that the tests fail with the adapter broken.
must_fail() {
  local name=$1 folder=$2
  shift 2
  cargo test -q --no-run --manifest-path "$folder/Cargo.toml" "$@" >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log" >&2; return 1; }
  if timeout 30 cargo test -q --manifest-path "$folder/Cargo.toml" "$@" >"$work/$name.log" 2>&1
  then
    echo "$name passes with broken timers: it does not use them" >&2
    return 1
  fi
  echo "$name: fails with broken timers"
}

# replace FILE OLD NEW: replaces OLD. Fails if the file has no OLD: the framework has changed.
replace() {
  grep -qF -- "$2" "$1" || { echo "$1 has no '$2' any more" >&2; return 1; }
  python3 - "$@" <<'PY'
import pathlib, sys
file, old, new = sys.argv[1:]
path = pathlib.Path(file)
path.write_text(path.read_text().replace(old, new))
PY
}

# manifest_of PACKAGE ARGUMENTS...: prints the path of the manifest of a dependency.
manifest_of() {
  local package=$1
  shift
  cargo metadata --format-version 1 "$@" |
    grep -o "\"manifest_path\":\"[^\"]*/$package[^\"]*/Cargo.toml\"" | cut -d'"' -f4
}

manifest=$(manifest_of 'quinn-0\.11' --locked --manifest-path timers/adapters/Cargo.toml)

# quinn's tests are modules of the crate. The copy's `Runtime` is not the trait of the published
# crate, so the adapter's source becomes a module of the copy.
cp -r "$(dirname "$manifest")" "$work/quinn"
quinn=$work/quinn
chmod -R u+w "$quinn"
rm -rf "$quinn/benches" "$quinn/examples" "$quinn/Cargo.toml.orig"
awk '/^\[\[(example|bench)\]\]/ { skip = 1; next } /^\[/ { skip = 0 } !skip' \
  "$(dirname "$manifest")/Cargo.toml" >"$quinn/Cargo.toml"
cat >>"$quinn/Cargo.toml" <<TOML
[dependencies.tickless]
path = "$repository/timers/tickless"
features = ["tokio-time"]
[workspace]
TOML
run_suite quinn-theirs "$quinn" --lib --tests -- --include-ignored
ours=$quinn/src/runtime/tickless.rs
{
  echo 'use std::future::Future;'
  sed '/^\/\/!/d; /cfg(feature/d; /^\/\/\/ Compiles the code in the README/,$d' \
    timers/adapters/tickless-quinn/src/lib.rs
} >"$ours"
replace "$ours" 'use quinn::' 'use super::'
replace "$ours" 'quinn::TokioRuntime' 'super::TokioRuntime'
cat >>"$quinn/src/runtime.rs" <<'RUST'
#[allow(dead_code, unreachable_pub)]
mod tickless;
pub use self::tickless::TicklessRuntime;
RUST
replace "$quinn/src/runtime.rs" 'Some(Arc::new(TokioRuntime))' \
  'Some(Arc::new(TicklessRuntime::on_tokio().expect("within tokio")))'
replace "$quinn/src/tests.rs" 'use crate::runtime::TokioRuntime' \
  'use crate::runtime::TicklessRuntime'
replace "$quinn/src/tests.rs" 'Arc::new(TokioRuntime)' \
  'Arc::new(TicklessRuntime::on_tokio().expect("within tokio"))'
run_suite quinn-ours "$quinn" --lib --tests -- --include-ignored
compare quinn
replace "$ours" 'sleep_until(time::from_std(at))' \
  'sleep_until(time::from_std(at + std::time::Duration::from_secs(3600)))'
must_fail quinn "$quinn" --lib handshake_timeout

# tower-http and its tests call `tokio::time`: the copy calls `tickless::tokio_time` instead.
mkdir -p "$work/uses/src"
touch "$work/uses/src/lib.rs"
cat >"$work/uses/Cargo.toml" <<TOML
[package]
name = "uses"
edition = "2024"
[dependencies]
tower-http = "=0.6.11"
[workspace]
TOML
tower_http=$work/tower/tower-http
mkdir "$work/tower"
cp -r "$(dirname "$(manifest_of tower-http-0 --manifest-path "$work/uses/Cargo.toml")")" \
  "$tower_http"
chmod -R u+w "$tower_http"
# Its tests read this file in the folder of its repository.
cp "$tower_http/README.md" "$work/tower"
cat >>"$tower_http/Cargo.toml" <<TOML
[dependencies.tickless]
path = "$repository/timers/tickless"
features = ["tokio-test-util"]
[workspace]
TOML
run_suite tower-http-theirs "$tower_http" --features full --lib
replace "$tower_http/src/timeout/service.rs" tokio::time tickless::tokio_time
grep -rlF tokio::time "$tower_http/src" | xargs sed -i 's/\btokio::time/tickless::tokio_time/g'
run_suite tower-http-ours "$tower_http" --features full --lib
compare tower-http
replace "$tower_http/src/timeout/service.rs" 'sleep(self.timeout)' \
  'sleep(self.timeout + Duration::from_secs(3600))'
must_fail tower-http "$tower_http" --features full --lib custom_status_code

# One file provides the timer of hyper's tests.
hyper=$work/hyper
if ! timeout 300 git clone -q "${HYPER:-https://github.com/hyperium/hyper}" "$hyper"; then
  skip frameworks "hyper's repository is unavailable"
  exit 0
fi
version=$(sed -n '/^name = "hyper"$/{n;s/version = "\(.*\)"/\1/p}' timers/adapters/Cargo.lock)
git -C "$hyper" checkout -q "v$version" 2>/dev/null ||
  echo "hyper $version has no tag in this clone: testing the newest commit"
cat >>"$hyper/Cargo.toml" <<TOML
[patch.crates-io]
hyper = { path = "." }
[workspace]
TOML
replace "$hyper/Cargo.toml" '[dev-dependencies]' "[dev-dependencies]
tickless = { path = \"$repository/timers/tickless\", features = [\"tokio-time\"] }
tickless-hyper = { path = \"$repository/timers/adapters/tickless-hyper\" }"
run_suite hyper-theirs "$hyper" --features full --tests -- --include-ignored
ours=$hyper/tests/support/tickless.rs
cat >"$ours" <<'RUST'
use hyper::rt::{Sleep, Timer};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tickless_hyper::TicklessTimer;

#[derive(Clone, Debug)]
pub struct TokioTimer;

fn timer() -> TicklessTimer {
    TicklessTimer::new(tickless::tokio_time::timers())
}

impl Timer for TokioTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        timer().sleep(duration)
    }
    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        timer().sleep_until(deadline)
    }
    fn now(&self) -> Instant {
        timer().now()
    }
    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        timer().reset(sleep, new_deadline)
    }
}
RUST
replace "$hyper/tests/support/mod.rs" 'TokioIo, TokioTimer}' 'TokioIo}'
cat >>"$hyper/tests/support/mod.rs" <<'RUST'
mod tickless;
#[allow(unused_imports)]
pub use self::tickless::TokioTimer;
RUST
run_suite hyper-ours "$hyper" --features full --tests -- --include-ignored
compare hyper
replace "$ours" 'timer().sleep_until(deadline)' \
  'timer().sleep_until(deadline + Duration::from_secs(3600))'
must_fail hyper "$hyper" --features full --test server header_read_timeout
