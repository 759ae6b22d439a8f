#!/usr/bin/env bash
# Long runs of random histories, of which the gate runs seconds. Each accounts for every arming,
# every request or every permit. A test prints the command that repeats its choices.
# Usage: ci/attacks.sh [SECONDS [SCENARIO]...]   600 for each of all scenarios by default.
#   barrier   the biased lock's barrier on real hardware: 10^9 rounds; needs two idle CPUs
#   soak      all kinds of timers, threads that end, forks; constant memory
#   deferred  expiry threads and bases that go offline, on real threads
#   sleeps    futures that are polled, reset, moved and dropped, with wakers that panic
#   adapters  the same for embassy's driver; services of tower that panic
#   identity  timers that die in their callbacks while others are created at their addresses, under
#             ThreadSanitizer
#   c         everything in the C interface that threads share
. "$(dirname "$0")/lib.sh"

seconds=${1:-600}
[ $# -eq 0 ] || shift
scenarios=("$@")
[ ${#scenarios[@]} -gt 0 ] || scenarios=(barrier soak deferred sleeps adapters identity c)
export TICKLESS_SECONDS=$seconds TICKLESS_RUN=${TICKLESS_RUN:-$(date +%s)}

# attack ARGUMENTS...: runs tests of cargo's arguments, all at a time.
attack() {
  timeout $((seconds + 1800)) cargo test --locked -q "$@" --nocapture --test-threads=8
}

for scenario in "${scenarios[@]}"; do
  echo "=== $scenario"
  case $scenario in
    barrier)
      TICKLESS_LITMUS_ROUNDS=${TICKLESS_LITMUS_ROUNDS:-1000000000} attack --release -p tickless \
        --lib -- --exact platform::membarrier::tests::one_of_two_threads_sees_the_others_store ;;
    soak) bash ci/soak.sh "$seconds" ;;
    deferred)
      attack -p tickless --test stress -- --exact deferred_expiry_ends_each_arming_once ;;
    sleeps) attack -p tickless --test all -- --exact future::sleeps_survive_an_attack ;;
    adapters)
      cd timers/adapters
      attack --target-dir target -p tickless-tower --test attack --
      attack --target-dir target -p tickless-embassy --features std --test attack --
      cd ../.. ;;
    identity) bash ci/tsan.sh identity ;;
    c)
      out=$PWD/target/attacks
      timers/tickless-capi/install.sh --prefix "$out" >/dev/null
      cc -std=c11 -O2 -pthread -I"$out/include" timers/tickless-capi/tests/c/attack.c \
        -o "$out/attack" -L"$out/lib" -Wl,-rpath,"$out/lib" -ltickless
      "$out/attack" $((seconds * 1000)) "$(cksum <<<"$TICKLESS_RUN" | cut -d' ' -f1)" ;;
    *) echo "there is no scenario $scenario" >&2 && exit 2 ;;
  esac
done
