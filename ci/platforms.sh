#!/usr/bin/env bash
# Checks the core and the clocks where there is no operating system, and runs their tests on aarch64
# under qemu. What cannot be had on this machine is skipped, and said.
. "$(dirname "$0")/lib.sh"

has_target() {
  rustup target list --installed | grep -qx "$1" || timeout 600 rustup target add "$1"
}

# check TARGET ARGUMENTS...
check() {
  local target=$1
  shift
  if ! has_target "$target"; then
    skip platforms "the standard library for $target cannot be had"
    return 0
  fi
  cargo check --locked --target "$target" -p tickless-core -p tickless-clock "$@"
  echo "$target: ok"
}

check wasm32-unknown-unknown
check thumbv7em-none-eabihf
check thumbv7em-none-eabihf --features tickless-core/portable-atomic

# A library that cannot work on a target says so, instead of dozens of errors.
if has_target aarch64-apple-darwin; then
  said=$(cargo check --locked --target aarch64-apple-darwin -p tickless 2>&1) &&
    { echo "tickless compiles for macOS; say in docs/platforms.md what works there" >&2; exit 1; }
  grep -q 'tickless supports Linux' <<<"$said" || { echo "$said" >&2; exit 1; }
fi

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
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L $sysroot"
# Not the randomised histories: emulated, they take a quarter of an hour. The architecture matters
# to orderings, words and arithmetic, which the rest is about. Nor the one that asks how often
# threads met, which they seldom do there.
PROPTEST_CASES=16 timeout 900 cargo test --locked -q --target "$target" \
  -p tickless-core -p tickless-clock --lib --tests -- \
  --skip histories --skip policies_trade --skip every_arming_ends_once
echo "$target under qemu: ok"
