//! Predictions of limits, for loads that are planned so that the answer is known.

use crate::support::{HEADER, line_of, sample_path, sched_switch};
use tickless_core::time::Ns;
use tickless_trace::Trace;
use tickless_trace::quota::{Prediction, QuotaError, Request, predict};

const GROUP: &str = "# cgroup {\"path\":\"/pod\",\"limit\":null,\"counters\":\
    {\"periods\":0,\"throttled\":0,\"stood_ns\":0},\"threads\":[70,71]}\n";

/// The text of a trace: threads with their CPU, when they were woken, and their work, in ms.
fn trace_of(pieces: &[(u32, u16, u64, u64)]) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for &(pid, cpu, at, work) in pieces {
        let (at, end, task) = (at * 1_000, (at + work) * 1_000, format!("t-{pid}"));
        let wake = format!("sched_wakeup: comm=t pid={pid} prio=120 target_cpu=00{cpu}");
        lines.push((at, line_of("<idle>-0", at, cpu, "d.h1.", &wake)));
        lines.push((at + 1, line_of("<idle>-0", at, cpu, "d..2.", &sched_switch(0, pid))));
        lines.push((end, line_of(&task, end, cpu, "d..2.", &sched_switch(pid, 0))));
    }
    for at in [0, 1_000_000] {
        let timer = "hrtimer_cancel: hrtimer=0a";
        lines.push((at, line_of("<idle>-0", at, 1, "d..1.", timer)));
    }
    lines.sort_by_key(|(at, _)| *at);
    let lines: String = lines.into_iter().map(|(_, line)| line).collect();
    HEADER.to_string() + &lines + GROUP
}

fn request(cpus: usize, limit: f64) -> Request {
    Request {
        cpus: vec![cpus],
        limits: vec![limit],
        delay: Ns(1_000_000),
        delayed_percent_max: 1.0,
        ..Request::default()
    }
}

fn predicted(text: &str, request: &Request) -> Result<Prediction, QuotaError> {
    predict(&Trace::parse("t", text.as_bytes()).unwrap(), request)
}

const MS: u64 = 1_000_000;

/// Two threads at once use the quota up twice as fast, and a burst that was saved lets them pass.
#[test]
fn bursts_and_cpus_count() {
    let pieces: Vec<_> =
        (0..8).flat_map(|at| [(70, 0, 100 + 100 * at, 20), (71, 1, 100 + 100 * at, 20)]).collect();
    let text = trace_of(&pieces);
    let two = predicted(&text, &request(2, 0.5)).unwrap();
    let one = predicted(&text, &request(1, 0.5)).unwrap();
    // 20 ms each fit 50 ms; with 30 ms they do not.
    assert_eq!(two.settings[0].throttled, 0.0, "{:?}", two.settings);
    assert_eq!(one.settings[0].delayed_percent, 0.0, "against the same CPU without a limit");
    let tight = predicted(&text, &request(2, 0.3)).unwrap();
    assert!(tight.settings[0].throttled >= 7.0, "{:?}", tight.settings);
    let burst = Request { bursts_percent: vec![100.0], ..request(2, 0.35) };
    let without = predicted(&text, &request(2, 0.35)).unwrap();
    let with = predicted(&text, &burst).unwrap();
    let stood = |it: &Prediction| it.settings[0].stood_ns.sum;
    assert!(stood(&with) * 2 < stood(&without), "{:?} {:?}", with.settings, without.settings);
}

/// Goal: a limit's prediction does not depend on which others are predicted with it, though the
/// simulation of a limit that is never reached serves higher ones.
#[test]
fn limits_are_predicted_alike_alone_and_together() {
    let pieces: Vec<_> = (0..9)
        .flat_map(|at| [(70, 0, 50 + 100 * at, 7 + 5 * (at % 4)), (71, 1, 60 + 100 * at, 8)])
        .collect();
    let text = trace_of(&pieces);
    let limits = [0.1, 0.25, 0.3, 0.35, 0.4, 0.8, 2.0, 0.2, 0.15];
    for bursts_percent in [vec![0.0], vec![60.0]] {
        let request = |limits: &[f64]| Request {
            limits: limits.to_vec(),
            bursts_percent: bursts_percent.clone(),
            ..request(2, 0.0)
        };
        let together = predicted(&text, &request(&limits)).unwrap().settings;
        let throttled = together.iter().filter(|setting| setting.throttled > 0.0).count();
        assert!((3..limits.len() - 2).contains(&throttled), "{throttled}");
        for (limit, one) in limits.iter().zip(&together) {
            let alone = predicted(&text, &request(&[*limit])).unwrap().settings;
            assert_eq!(format!("{:?}", alone[0]), format!("{one:?}"));
        }
    }
}

/// A monitor's many short pieces hide the delays of the others; left out, they use quota as before.
#[test]
fn threads_can_be_left_out() {
    let ticks = (0..90).map(|at| (71, 1, 50 + 10 * at, 1));
    let text = trace_of(&ticks.chain([(70, 0, 100, 30), (70, 0, 500, 30)]).collect::<Vec<_>>());
    let all = predicted(&text, &request(2, 0.2)).unwrap();
    let busiest = all.busiest.as_ref().map(|it| (&*it.thread, it.pid, it.pieces));
    assert_eq!((all.pieces, busiest), (92, Some(("t", 71, 90))));
    assert!(all.notes[0].contains("--without 71"), "{:?}", all.notes);
    let without = |name: &str| Request { without: vec![name.into()], ..request(2, 0.2) };
    let apart = predicted(&text, &without("71")).unwrap();
    assert_eq!((apart.pieces, apart.notes.len(), apart.cpu_seconds), (2, 0, all.cpu_seconds));
    let [all, apart] = [all, apart].map(|it| it.settings[0].clone());
    assert_eq!((all.throttled, all.stood_ns.sum), (apart.throttled, apart.stood_ns.sum));
    assert!(apart.delayed_percent > 80.0, "{apart:?}");
    assert!(all.delayed_percent < 50.0, "{all:?}");
    for (name, why) in [("t", "leaves out all"), ("monitor", "leaves out none")] {
        let refused = predicted(&text, &without(name)).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

/// Nothing in a limit of all CPUs is delayed by more than the phase of its slices, and a smaller
/// limit never has fewer delays by much.
#[test]
fn the_sample_has_a_least_limit() {
    let trace = Trace::read(&sample_path("bursts")).unwrap();
    let request = Request { delay: Ns(5 * MS), delayed_percent_max: 1.0, ..Request::default() };
    let prediction = predict(&trace, &request).unwrap();
    assert_eq!(prediction.group.as_deref(), Some("/bursts"));
    let delayed: Vec<f64> = prediction.settings.iter().map(|it| it.delayed_percent).collect();
    assert!(delayed.is_sorted_by(|a, b| a + 1.0 >= *b), "{delayed:?}");
    assert!(delayed[0] > 10.0, "{delayed:?}");
    let least = prediction.least[0].limit_cpus.unwrap();
    assert!(least > prediction.mean_cpus && least <= 2.0, "{least}");
}
