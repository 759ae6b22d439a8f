#!/usr/bin/env bash
# Checks the `no_std` crates for targets without an operating system, and the library for systems
# other than Linux. Runs the tests of the portable platform, those of the library with musl, and
# those of the `no_std` crates and the library on aarch64 under qemu. Reports targets and tools that
# this machine lacks as SKIPPED.
. "$(dirname "$0")/lib.sh"

has_target() {
  rustup target list --installed | grep -qx "$1" || timeout 600 rustup target add "$1"
}

# A folder of its own, so that other steps can build beside this one.
export CARGO_TARGET_DIR=$PWD/target/platforms

no_std=(-p tickless-core)

# check TARGET ARGUMENTS...: checks the `no_std` crates for a target.
check() {
  local target=$1
  shift
  if ! has_target "$target"; then
    skip platforms "the standard library for $target is unavailable"
    return 0
  fi
  cargo check --locked --target "$target" "${no_std[@]}" "$@"
  echo "$target: ok"
}

check wasm32-unknown-unknown
check thumbv7em-none-eabihf
check thumbv7em-none-eabihf --features tickless-core/portable-atomic

# The portable platform of the library, for systems other than Linux. Its tests run on this machine;
# for those systems the library, its futures and examples are only checked.
export RUSTFLAGS="--cfg tickless_portable ${RUSTFLAGS:-}"
library=(-p tickless --lib)
cargo test --locked -q "${library[@]}" --test all --target-dir target/portable
cargo clippy --locked -q "${library[@]}" --examples --features tokio-time \
  --target-dir target/portable -- -D warnings
export RUSTFLAGS=${RUSTFLAGS#--cfg tickless_portable }
for target in x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-{msvc,gnu}; do
  if ! has_target "$target"; then
    skip platforms "the standard library for $target is unavailable"
    continue
  fi
  cargo check --locked -q --target "$target" "${library[@]}" --examples \
    --features tokio-time
  echo "$target: ok"
done

if [ -n "${CI_HOUSES:-}" ]; then
  echo "musl and aarch64 are left to ci/gate all, and to ci/platforms.sh alone"
  exit
fi

# The library with another libc, with all features.
target=x86_64-unknown-linux-musl
if has_target "$target"; then
  timeout 900 cargo test --locked -q --target "$target" "${library[@]}" \
    --all-features --test all --test fork --test tokio_time
  echo "$target: ok"
  # A static program that is the first of its system (PID 1), here of a namespace.
  as_first="unshare --user --map-root-user --pid --fork --mount-proc"
  if $as_first sh -c '[ $$ = 1 ]' 2>/dev/null; then
    programs=$(cargo test --locked --target "$target" -p tickless --all-features \
      --test all --test fork --no-run 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
    for program in $programs; do
      program=$(realpath "$program")
      ! readelf -d "$program" | grep NEEDED ||
        { echo "$program needs a shared library" >&2 && exit 1; }
      (cd timers/tickless && timeout 900 $as_first "$program" -q)
    done
    echo "$target as PID 1: ok"
  else
    skip platforms "there are no PID namespaces here, so nothing ran as PID 1"
  fi
else
  skip platforms "the standard library for $target is unavailable"
fi

target=aarch64-unknown-linux-gnu
have_emulator() {
  command -v qemu-aarch64-static >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null
}
have_emulator ||
  install_packages qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross
if ! have_emulator || ! has_target "$target"; then
  skip platforms "no qemu-aarch64-static, cross compiler or standard library for $target"
  exit 0
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
sysroot=/usr/aarch64-linux-gnu
# Runs on one CPU: qemu 7.2 on x86-64 lets a SeqCst load (ldar) overtake an earlier SeqCst store
# (stlr), which Arm forbids, so wakeups would be lost. In 12,000 of 200,000 rounds in which two
# threads each stored and then loaded the other's word, both loads were stale; natively in none.
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
runner="taskset -c $cpu qemu-aarch64-static -L $sysroot"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$runner
# Skips the randomised histories, which take a quarter of an hour under emulation; the other tests
# cover orderings, words and arithmetic, which depend on the architecture. Also skips a test that
# requires threads to interleave often, which they do not do on one CPU.
timeout 900 cargo test --locked -q --target "$target" \
  "${no_std[@]}" --lib --tests -- \
  --skip histories --skip policies_trade
# The library, with its futures and `tokio_time`. Tests that start their own program again do so
# under the emulator. Skips two tests whose sleeps end before the emulated program has polled them.
TICKLESS_TEST_RUNNER=$runner timeout 900 cargo test --locked -q --target "$target" "${library[@]}" \
  --features tokio-test-util --test all --test tokio_time -- \
  --skip the_last_drop_
# Random histories of futures and of contended locks, a minute in all: with the atomic instructions
# of Armv8.1, and with the load-exclusive loops of Armv8.0. On one CPU threads take turns, so this
# shows no weak ordering; the models check the orderings (ci/models.sh).
for processor in max cortex-a57; do
  QEMU_CPU=$processor TICKLESS_SECONDS=15 timeout 300 cargo test --locked -q --target "$target" \
    -p tickless --features tokio-test-util --test stress --test all -- deferred_expiry \
    sleeps_survive
done
echo "$target under qemu: ok"
