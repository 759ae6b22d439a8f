//! The rate of the tick is found from wheel timers.

use crate::support::parsed;
use tickless_core::time::Ns;
use tickless_trace::read::{Jiffy, Trace};

fn ftrace(lines: &[impl AsRef<str>]) -> Trace {
    let lines = lines.iter().map(|line| format!("{}\n", line.as_ref()));
    parsed("# tracer: nop\n".to_string() + &lines.collect::<String>())
}

fn wheel_start(ns: u64, now: u64) -> String {
    let (seconds, micros) = (ns / 1_000_000_000, ns % 1_000_000_000 / 1_000);
    let expires = now + 5;
    format!(
        " a-1 [000] .....  {seconds}.{micros:06}: timer_start: timer=00000000deadbeef \
         function=f expires={expires} [timeout=5]"
    )
}

#[test]
fn hz_is_found_from_the_wheel() {
    for hz in [100, 250, 300, 1000u64] {
        let tick = (1_000_000_000 + hz / 2) / hz;
        // A reading every 1.7 ms for a second, each jiffy read up to two ticks late.
        let readings = (0..600).map(|step| {
            let at = step * 1_700_000;
            wheel_start(50_000_000_000 + at, 4_295_000_000 + at / tick - step % 3 / 2)
        });
        let trace = ftrace(&readings.collect::<Vec<_>>());
        assert_eq!(u64::from(trace.hz.unwrap()), hz);
        let clock = trace.jiffies.unwrap();
        let begin = clock.time(Jiffy(4_295_000_000)).0;
        // Without tick events it may be one tick late, and `late_max` shows that.
        assert!((50_000_000_000..50_000_000_000 + tick).contains(&begin), "{hz} Hz: {begin}");
        assert_eq!(clock.late_max, Ns(tick));
        assert_eq!(clock.time(Jiffy(4_295_000_000 + hz)).0 - begin, tick * hz);
    }
}
