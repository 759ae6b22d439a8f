#!/usr/bin/env bash
# TRAPpy 6.0.1 reads a trace as the kernel prints it (with the five columns of flags) as one without
# events: empty tables, a duration of 0, no error. Only trace-cmd's form, without them, is read.
# Guessed before the run: read, or refused.
. "$(dirname "$0")/lib.sh"
for form in kernel trace-cmd; do
  columns=$([ $form = kernel ] && echo ' d..2.' || true)
  for second in 1 2 3; do
    echo "         a-task-7     [000]$columns     $second.000001: sched_switch: prev_comm=a-task" \
      "prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b-task next_pid=8 next_prio=120"
  done >"$work/$form.txt"
done
export FORMS=$work
python TRAPpy==6.0.1 'pandas==1.5.3' 'numpy==1.26.4' <<'PYTHON'
import os
import warnings

warnings.simplefilter("ignore")
import trappy

for form in ("kernel", "trace-cmd"):
    path = os.path.join(os.environ["FORMS"], f"{form}.txt")
    trace = trappy.FTrace(path, normalize_time=False, events=["sched_switch"])
    print(f"{form}: {len(trace.sched_switch.data_frame)} of 3 events, {trace.get_duration()} s")
PYTHON
seen <<'SEEN'
kernel: 0 of 3 events, 0 s
trace-cmd: 3 of 3 events, 2.0 s
SEEN
