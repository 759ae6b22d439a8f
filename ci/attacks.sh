#!/usr/bin/env bash
# Long runs of random histories, of which the gate runs seconds. Each accounts for every arming or
# every permit. A test prints the command that repeats its choices.
# Usage: ci/attacks.sh [SECONDS [SCENARIO]...]   600 for each of all scenarios by default.
#   barrier   the biased lock's barrier on real hardware: 10^9 rounds; needs two idle CPUs
#   soak      all kinds of timers, threads that end, forks; constant memory
#   deferred  expiry threads and bases that go offline, on real threads
#   sleeps    futures that are polled, reset, moved and dropped, with wakers that panic
#   identity  timers that die in their callbacks while others are created at their addresses, under
#             ThreadSanitizer
#   c         everything in the C interface that threads share
#   bpf       as root, the eBPF programs of `tickless warp` and `tickless top`: random trees in
#             virtual time beside each other, one of which is killed, and two tables of one program
. "$(dirname "$0")/lib.sh"

seconds=${1:-600}
[ $# -eq 0 ] || shift
scenarios=("$@")
[ ${#scenarios[@]} -gt 0 ] || scenarios=(barrier soak deferred sleeps identity c bpf)
export TICKLESS_SECONDS=$seconds TICKLESS_RUN=${TICKLESS_RUN:-$(date +%s)}

# attack ARGUMENTS...: runs tests of cargo's arguments, all at a time.
attack() {
  timeout $((seconds + 1800)) cargo test --locked -q "$@" --nocapture --test-threads=8
}

# Each round, two trees in virtual time, a third one that is killed in the middle, of which nothing
# may be left, and two tables that must have counted each timer of a program with an odd name.
bpf_attack() {
  if [ "$(id -u)" != 0 ] || ! command -v python3 >/dev/null; then
    skip "ci/attacks.sh bpf" "it needs root and python3"
    return 0
  fi
  cargo build --locked -q -p tickless-cli
  local program=${CARGO_TARGET_DIR:-$PWD/target}/debug/tickless folder round=0 child counted
  local until=$((SECONDS + seconds)) seed=$((TICKLESS_RUN % 1000000 * 1000)) children
  folder=$(mktemp -d)
  while [ $SECONDS -lt $until ]; do
    seed=$((seed + 1)) round=$((round + 1)) children=()
    for child in 1 2; do
      timeout 300 "$program" warp -q -- python3 ci/warp-attack.py "$seed$child" >"$folder/$child" &
      children+=($!)
      "$program" top --once -i 15s --format json >"$folder/top$child" 2>"$folder/error$child" &
      children+=($!)
    done
    "$program" warp -q -- python3 ci/warp-attack.py "${seed}3" killed >/dev/null 2>&1 &
    child=$!
    sleep "0.$((RANDOM % 900 + 100))"
    kill -KILL $child
    wait $child 2>/dev/null || true
    sleep 5
    if pgrep -f "warp-attack.py ${seed}3 killed" >/dev/null; then
      echo "seed $seed: a process has outlived its tracer" >&2 && exit 1
    fi
    python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(15, b"known) R (1")
for _ in range(2000): time.sleep(0.0001)'
    for child in "${children[@]}"; do
      wait "$child" || { echo "seed $seed fails" && cat "$folder"/* && exit 1; } >&2
    done
    for child in 1 2; do
      # Some kernels show no tracepoint while threads of process 1 run. Both tables miss the same
      # expiries then, up to 130 of these 2,000: `top` counts the timers as armed again, and shows
      # for how long nothing was seen (`unseen`).
      counted=$(python3 -c 'import json, sys
rows = [row for row in json.load(sys.stdin)["rows"] if row["process"] == "known) R (1"]
print(*[(row["arms"], row["expiries"] + row["rearms"]) for row in rows])' <"$folder/top$child")
      if [ "$counted" != '(2000, 2000)' ]; then
        echo "seed $seed: top counts $counted, not 2000 timers that expire" >&2 && exit 1
      fi
    done
  done
  rm -r "$folder"
  echo "$round rounds"
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
    sleeps) attack -p tickless --test all -- --exact attack::sleeps_survive_an_attack ;;
    identity) bash ci/tsan.sh identity ;;
    c)
      out=$PWD/target/attacks
      timers/tickless-capi/install.sh --prefix "$out" >/dev/null
      cc -std=c11 -O2 -pthread -I"$out/include" timers/tickless-capi/tests/c/attack.c \
        -o "$out/attack" -L"$out/lib" -Wl,-rpath,"$out/lib" -ltickless
      "$out/attack" $((seconds * 1000)) "$(cksum <<<"$TICKLESS_RUN" | cut -d' ' -f1)" ;;
    bpf) bpf_attack ;;
    *) echo "there is no scenario $scenario" >&2 && exit 2 ;;
  esac
done
