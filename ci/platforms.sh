#!/usr/bin/env bash
# Checks the `no_std` crates where there is no operating system, and the library where it is not
# Linux; runs timers in WebAssembly, the portable platform's tests, and those of the `no_std` crates
# and the library on aarch64 under qemu. What cannot be had on this machine is skipped, and said.
. "$(dirname "$0")/lib.sh"

has_target() {
  rustup target list --installed | grep -qx "$1" || timeout 600 rustup target add "$1"
}

no_std=(-p tickless-core)

# check TARGET ARGUMENTS...
check() {
  local target=$1
  shift
  if ! has_target "$target"; then
    skip platforms "the standard library for $target cannot be had"
    return 0
  fi
  cargo check --locked --target "$target" "${no_std[@]}" "$@"
  echo "$target: ok"
}

check wasm32-unknown-unknown
check thumbv7em-none-eabihf
check thumbv7em-none-eabihf --features tickless-core/portable-atomic

# Timers in WebAssembly, run by node.
if ! command -v node >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { timeout 120 apt-get update && timeout 600 apt-get install -y --no-install-recommends nodejs; } \
    >/dev/null 2>&1 || true
fi
if command -v node >/dev/null && has_target wasm32-unknown-unknown; then
  cargo build --locked -q -p tickless-core --example wasm --target wasm32-unknown-unknown
  built=${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/debug/examples/wasm.wasm
  timeout 120 node crates/tickless-core/examples/wasm/run.mjs "$built"
else
  skip platforms "there is no node, or no standard library for wasm32-unknown-unknown"
fi

# The portable platform of the library, for systems other than Linux: its tests run here, and for
# those systems it is checked, with the futures and the examples.
export RUSTFLAGS="--cfg tickless_portable ${RUSTFLAGS:-}"
library=(-p tickless --lib)
cargo test --locked -q "${library[@]}" --test all --target-dir target/portable
cargo clippy --locked -q "${library[@]}" --examples --features stream,tokio-time \
  --target-dir target/portable -- -D warnings
export RUSTFLAGS=${RUSTFLAGS#--cfg tickless_portable }
for target in x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-{msvc,gnu}; do
  if ! has_target "$target"; then
    skip platforms "the standard library for $target cannot be had"
    continue
  fi
  cargo check --locked -q --target "$target" "${library[@]}" --examples \
    --features stream,tokio-time
  echo "$target: ok"
done

target=aarch64-unknown-linux-gnu
have_emulator() {
  command -v qemu-aarch64-static >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null
}
if ! have_emulator; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { timeout 120 apt-get update && timeout 600 apt-get install -y --no-install-recommends \
      qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross; } >/dev/null 2>&1 || true
  fi
fi
if ! have_emulator || ! has_target "$target"; then
  skip platforms "no qemu-aarch64-static, cross compiler or standard library for $target"
  exit 0
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
sysroot=/usr/aarch64-linux-gnu
# On one CPU: qemu 7.2 on x86-64 lets a SeqCst load (ldar) overtake a SeqCst store (stlr) before it,
# which Arm forbids, and a wakeup that two threads leave to each other is lost. Of 200,000 rounds of
# "each stores, then loads the other's", both loads were too old in 12,000; natively in none.
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
runner="taskset -c $cpu qemu-aarch64-static -L $sysroot"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$runner
# Not the randomised histories: emulated, they take a quarter of an hour. The architecture matters
# to orderings, words and arithmetic, which the rest is about. Nor the one that asks how often
# threads met, which they seldom do there.
PROPTEST_CASES=16 timeout 900 cargo test --locked -q --target "$target" \
  "${no_std[@]}" --lib --tests -- \
  --skip histories --skip policies_trade --skip every_arming_ends_once
# The library, with its futures and its face like tokio's. Not the five that start this very
# program again, as a child: the emulator's name is not handed on to it. Nor two whose sleeps are
# over before the emulated program has polled them, nor one that takes 60,000 turns of threads that
# spin for each other, on one CPU.
timeout 900 cargo test --locked -q --target "$target" "${library[@]}" \
  --features stream,tokio-time --test all --test tokio_time -- --skip a_failure_prints_its_seed \
  --skip a_program_ends_with_timers_in_statics --skip timers_are_kept_when_calls_are_refused \
  --skip a_drop_that_would_never_end_aborts --skip a_limit_on_threads_is_an_error --skip the_last_drop_ \
  --skip no_call_is_lost
echo "$target under qemu: ok"
