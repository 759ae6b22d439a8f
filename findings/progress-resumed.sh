#!/usr/bin/env bash
# A download of 1,000 parts is resumed at 900, which each library is told when it begins, and goes
# on with 10 parts a second for 3 s; 70 parts are left, for 7 s. Five estimates are under two
# seconds, because they count the 900 parts as done in these 3 s: those of indicatif,
# schollz/progressbar, progress of npm, and the average ones of progressbar2 and mpb. enlighten
# says 98 s: it leaves the 900 parts out of what is done, but not of what is to do.
# Guessed before the run: half count the old parts as done at once.
. "$(dirname "$0")/lib.sh"
python tqdm==4.70.1 progressbar2==4.6.0 enlighten==1.14.1 rich==15.0.0 alive-progress==3.3.0 \
  progress==1.6.1 <<'PYTHON'
import io
import itertools
import re
import time

import alive_progress
import enlighten
import progress.bar
import progressbar
import rich.console
import rich.progress
import tqdm


def seconds(text):
    """Returns the seconds of the last time in a text, as 01:38 or 7s."""
    minutes, rest, short = re.findall(r"(\d+):(\d\d)(?![:\d])|(\d+)s", text)[-1]
    return int(short or 60 * int(minutes) + int(rest))


def go_on(add):
    for _ in range(6):
        time.sleep(0.5)
        add(5)


def with_tqdm(out):
    bar = tqdm.tqdm(total=1000, initial=900, file=out, mininterval=0, bar_format="{remaining}")
    go_on(bar.update)
    return seconds(out.getvalue())


def with_progressbar2(out, widget):
    bar = progressbar.ProgressBar(max_value=1000, initial_value=900, fd=out, is_terminal=True,
                                  widgets=[widget], poll_interval=0.01).start()
    parts = itertools.count(905, 5)
    go_on(lambda _: bar.update(next(parts), force=True))
    return seconds(out.getvalue())


def with_enlighten(out):
    manager = enlighten.Manager(stream=out, enabled=True, set_scroll=False)
    bar = manager.counter(total=1000, count=900, min_delta=0, bar_format="{eta}")
    go_on(bar.update)
    return seconds(out.getvalue())


def with_rich(out):
    bar = rich.progress.Progress(console=rich.console.Console(file=out))
    task = bar.add_task("", total=1000, completed=900)
    go_on(lambda count: bar.advance(task, count))
    return bar.tasks[0].time_remaining


def with_alive(out):
    with alive_progress.alive_bar(1000, file=out, force_tty=True) as bar:
        bar(900, skipped=True)
        go_on(bar)
        return seconds(bar.eta)


def with_progress(out):
    bar = progress.bar.Bar(max=1000, index=900, file=out, check_tty=False)
    go_on(bar.next)
    return bar.eta


for name, estimate in {
    "tqdm": with_tqdm, "enlighten": with_enlighten, "rich": with_rich,
    "alive-progress": with_alive, "progress of PyPI": with_progress,
    "progressbar2, ETA": lambda out: with_progressbar2(out, progressbar.ETA()),
    "progressbar2, AdaptiveETA": lambda out: with_progressbar2(out, progressbar.AdaptiveETA()),
}.items():
    print(f"{name}|{estimate(io.StringIO())}")
PYTHON
mv "$work/seen" "$work/all"
node cli-progress@3.12.0 progress@2.0.3 <<'JS'
import { createRequire } from "node:module";
import { Writable } from "node:stream";

const require = createRequire(import.meta.url);
let text = "";
const stream = Object.assign(
  new Writable({
    write(chunk, _, done) {
      text = String(chunk);
      done();
    },
  }),
  { isTTY: true, columns: 80, cursorTo() {}, clearLine() {}, moveCursor() {} });
async function goOn(add) {
  for (let i = 0; i < 6; i++) {
    await new Promise((done) => setTimeout(done, 500));
    add(5);
  }
}
const { SingleBar } = require("cli-progress");
const bar = new SingleBar({ stream, noTTYOutput: true });
bar.start(1000, 900);
await goOn((count) => bar.increment(count));
console.log(`cli-progress|${bar.eta.getTime()}`);
bar.stop();
const ProgressBar = require("progress");
const other = new ProgressBar(":eta", { total: 1000, curr: 900, stream, renderThrottle: 0 });
await goOn((count) => other.tick(count));
console.log(`progress of npm|${text}`);
process.exit();
JS
cat "$work/seen" >>"$work/all"
golang github.com/cheggaaa/pb/v3@v3.3.0 github.com/schollz/progressbar/v3@v3.19.1 \
  github.com/vbauerster/mpb/v8@v8.16.2 <<'GO'
package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cheggaaa/pb/v3"
	"github.com/schollz/progressbar/v3"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

func goOn(add func(int)) {
	for i := 0; i < 6; i++ {
		time.Sleep(500 * time.Millisecond)
		add(5)
	}
}

func main() {
	first := pb.ProgressBarTemplate(`{{rtime . "%s"}}`).New(1000).SetCurrent(900)
	first.SetWriter(io.Discard).Set(pb.Static, true).Start()
	goOn(func(count int) { first.Add(count); first.Write() })
	fmt.Println("pb|" + strings.TrimSuffix(first.String(), "s"))
	second := progressbar.NewOptions(1000, progressbar.OptionSetWriter(io.Discard))
	second.Set(900)
	goOn(func(count int) { second.Add(count) })
	fmt.Printf("schollz/progressbar|%.2f\n", second.State().SecondsLeft)
	var out bytes.Buffer
	bars := mpb.New(mpb.WithOutput(&out), mpb.WithAutoRefresh())
	third := bars.AddBar(1000, mpb.BarFillerTrim(), mpb.AppendDecorators(
		decor.AverageETA(decor.ET_STYLE_GO), decor.EwmaETA(decor.ET_STYLE_GO, 30)))
	third.SetCurrent(900)
	last := time.Now()
	goOn(func(count int) { third.EwmaIncrBy(count, time.Since(last)); last = time.Now() })
	time.Sleep(300 * time.Millisecond)
	text := out.String()
	times := strings.Split(strings.TrimSpace(text[strings.LastIndex(text, "]")+1:]), "s")
	fmt.Printf("mpb, AverageETA|%s\nmpb, EwmaETA|%s\n", times[0], strings.TrimSpace(times[1]))
}
GO
cat "$work/seen" >>"$work/all"
rust 'indicatif = "=0.18.6"' <<'RUST'
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::time::Duration;

fn main() {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
    let bar = bar.with_position(900);
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(500));
        bar.inc(5);
    }
    println!("indicatif|{}", bar.eta().as_secs_f64());
}
RUST
cat "$work/seen" >>"$work/all"
# Those that are right differ by some seconds.
awk -F'|' '{ kind = $2 < 2 ? "under 2 s" : $2 < 20 ? "4 to 20 s" : "over a minute" }
  { who[kind] = who[kind] ", " $1 }
  END { for (kind in who) print kind ":" substr(who[kind], 2) }' "$work/all" |
  LC_ALL=C sort | fold -sw 96 | sed 's/ $//' >"$work/seen"
seen <<'SEEN'
4 to 20 s: tqdm, rich, alive-progress, progress of PyPI, progressbar2, AdaptiveETA,
cli-progress, pb, mpb, EwmaETA
over a minute: enlighten
under 2 s: progressbar2, ETA, progress of npm, schollz/progressbar, mpb, AverageETA, indicatif
SEEN
