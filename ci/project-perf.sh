#!/usr/bin/env bash
# Compares `tickless project` with measurements on this machine. Records a load that uses the
# kernel's timers and projects the recording onto this machine's own file. Compares the projected
# device writes with the recorded ones, and the projected CPU time of timer code with perf samples
# of the same load, in turn.
#
# ci/project-perf.awk defines which functions are timer code, and the output lists those found.
# Needs root, perf, a C compiler, and two idle CPUs for some minutes.
# Usage: ci/project-perf.sh [TURNS [SECONDS]]   3 turns of 5 s; FILE=here.toml for a machine's file
. "$(dirname "$0")/lib.sh"

turns=${1:-3}
seconds=${2:-5}
name=ci/project-perf.sh
[ "$(id -u)" = 0 ] || { skip "$name" "recording needs root"; exit 0; }
for program in perf cc; do
  command -v $program >/dev/null || { skip "$name" "there is no $program"; exit 0; }
done

cargo build --locked --release -q -p tickless-cli
built=$(cargo metadata --format-version 1 --no-deps |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/release
tickless=$built/tickless
cpus=$(nproc)
work=$(mktemp -d)
load=$work/load
spinners=()
clean_up() {
  [ ${#spinners[@]} = 0 ] || kill "${spinners[@]}" 2>/dev/null || true
  # perf mounts tracefs and leaves it mounted, readable by all users.
  [ "$was_mounted" ] || umount /sys/kernel/tracing 2>/dev/null ||
    umount /sys/kernel/debug/tracing 2>/dev/null || true
  rm -rf "$work"
}
was_mounted=$(awk '$3 == "tracefs" { print $2 }' /proc/mounts)
trap clean_up EXIT
cc -O2 -pthread ci/timer-load.c -o "$load"

machine=${FILE:-$work/here.toml}
[ -e "$machine" ] || "$tickless" machines --measure --anyway -o "$machine" >/dev/null

# A cycle counter samples all code, including timer code that runs with interrupts off. Without one,
# as in most virtual machines, a timer takes the samples: it sees such code only where interrupts
# are enabled again, and never sees another timer's interrupt.
event=cycles/period=4000000,call-graph=fp/
if perf stat -e cycles true 2>&1 | grep -q 'not supported'; then
  event=cpu-clock/period=1000000,call-graph=fp/
fi
# An idle CPU changes its tick with interrupts off, where a timer cannot sample. Loops of the lowest
# priority therefore keep every CPU busy.
for _ in $(seq "$cpus"); do
  nice -n 19 sh -c 'while :; do :; done' &
  spinners+=($!)
done

# These tracepoints give the time of the interrupts: from entry to exit, without the callbacks.
points=()
for point in irq_vectors:local_timer_{entry,exit} timer:hrtimer_expire_{entry,exit}; do
  points+=(-e "$point")
done

# Samples the load with the tracepoints $2..., and writes the share of timer code to the file $1.
sample() {
  local to=$1
  shift
  perf record -q -a -c 1 -k mono -m 16M -e "$event" "$@" -o "$work/perf.data" \
    -- "$load" "$seconds" >/dev/null 2>"$work/said" || { cat "$work/said" >&2; return 1; }
  perf script -i "$work/perf.data" --ns -F comm,tid,cpu,time,period,event,ip,sym,trace \
    2>/dev/null | awk -f ci/project-perf.awk >"$to"
}

for turn in $(seq "$turns"); do
  "$tickless" record --force -o "$work/trace.txt.gz" --buffer 64M -- "$load" "$seconds" \
    >/dev/null 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
  "$tickless" project "$work/trace.txt.gz" --machine "$machine" --cpus "$cpus" \
    --policy restart-aware --seconds 1000 --format csv >"$work/$turn.projected" 2>"$work/said"
  sample "$work/$turn.once" "${points[@]}"
  # Records each tracepoint twice: the additional time is the cost of the tracepoints.
  sample "$work/$turn.twice" "${points[@]}" "${points[@]}"
  # Writes one line for each turn, with the columns that are named below.
  awk -v clock="${event%%/*}" '
    FILENAME ~ /projected$/ { split($0, cell, ","); figure[cell[4]] = cell[7]; next }
    $1 == "sampled" { share = $2; all = $3 }
    $1 == "interrupts" { count = $2; time = $3; called = $4 }
    $1 == "interrupts" && FILENAME ~ /once$/ {
      sampled = share; of = all; each = time / count; lines = called / count; interrupts = count
      after = $5 / count
    }
    END {
      # The time contains two tracepoints for each callback, and half of the two outer ones.
      line = (time / count - each) / (2 * lines)
      each -= (1 + lines) * line
      inside = clock == "cpu-clock" ? 1e9 * interrupts * each / of : 0
      measured = 100 * (sampled + inside)
      predicted = figure["timer_code_percent"] - figure["interrupts_percent"]
      writes = figure["device_writes"] / figure["recorded_device_writes"]
      printf "%d %d %.3f ", figure["recorded_device_writes"], figure["device_writes"], writes
      printf "%d %d %.3f %.3f ", interrupts, figure["wakeups"], 100 * sampled, 100 * inside
      printf "%.3f %.3f %.3f ", measured, predicted, predicted / measured
      printf "%.2f %.2f %.2f\n", 1e6 * each, 1e6 * (after - line), 1e6 * line
    }' "$work/$turn.projected" "$work/$turn.once" "$work/$turn.twice" >>"$work/turns"
done

columns=("device writes recorded" "projected" "projected / recorded"
  "timer interrupts while perf sampled" "projected from the recording"
  "timer code outside of interrupts, sampled, % of CPU time" "in interrupts, measured, %"
  "together, %" "projected without entry and exit of interrupts, %" "projected / measured"
  "an interrupt without callbacks, us" "of that, after the last callback, us"
  "a tracepoint, us")
echo "samples by ${event%%/*}; $turns turns of $seconds s, in turn: median (least to greatest)"
for at in "${!columns[@]}"; do
  cut -d' ' -f$((at + 1)) "$work/turns" | sort -g | awk -v what="${columns[$at]}" '
    { value[NR] = $1 }
    END { printf "%-60s %s (%s to %s)\n", what, value[int((NR + 1) / 2)], value[1], value[NR] }'
done
echo "in which functions the samples of timer code of the last turn were, % of CPU time"
awk '/^function/' "$work/$turns.once" | sort -k2 -gr | head -20 |
  awk '{ printf "%8.3f %s\n", 100 * $2, $3 }'
