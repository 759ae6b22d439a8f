#!/usr/bin/env bash
# APScheduler 3.11.3: a job of each 60 s with `jitter=10` runs each 65 s, since a period is
# counted from the last time with its jitter. A job of each minute by cron with `jitter=120` has
# no run in a third of the minutes.
# Guessed before the run: 60 s on average, since a jitter moves a run, not those after it, and a
# run for each minute.
. "$(dirname "$0")/lib.sh"
python apscheduler==3.11.3 <<'PYTHON'
import random
from datetime import datetime, timedelta, timezone

from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

start = datetime(2027, 3, 1, tzinfo=timezone.utc)
random.seed(1)


def runs(trigger):
    """The times of a day. The scheduler asks for each as soon as the one before has run."""
    runs = [trigger.get_next_fire_time(None, start)]
    while runs[-1] < start + timedelta(days=1):
        runs.append(trigger.get_next_fire_time(runs[-1], runs[-1]))
    return runs


for jitter in None, 10:
    print(f"each 60 s, jitter={jitter}:", end=" ")
    times = runs(IntervalTrigger(seconds=60, start_date=start, timezone="UTC", jitter=jitter))
    print(round((times[-1] - times[0]).total_seconds() / (len(times) - 1), 0), "s on average")
for jitter in None, 10, 120:
    times = runs(CronTrigger(minute="*", timezone="UTC", jitter=jitter))
    minutes = {run.replace(second=0, microsecond=0) for run in times}
    print(f"each minute, jitter={jitter}: {len(minutes)} minutes have a run, {len(times)} runs")
PYTHON
seen <<'SEEN'
each 60 s, jitter=None: 60.0 s on average
each 60 s, jitter=10: 65.0 s on average
each minute, jitter=None: 1441 minutes have a run, 1441 runs
each minute, jitter=10: 1441 minutes have a run, 1441 runs
each minute, jitter=120: 962 minutes have a run, 962 runs
SEEN
