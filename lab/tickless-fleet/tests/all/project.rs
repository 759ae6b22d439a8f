//! Projections agree with the recording, are deterministic, and grow as expected.

use std::path::Path;
use tickless_fleet::project::{Clock, Projected, Projection, Request, project};
use tickless_machine::machines::named;
use tickless_machine::spec::Spec;
use tickless_trace::Trace;
use tickless_trace::replay::streams::Streams;
use tickless_trace::replay::{Inference, ReplayPolicy};

fn trace(name: &str) -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../traces/{name}.txt.gz"));
    Trace::read(&path).unwrap()
}

fn streams(name: &str) -> Streams {
    Streams::of(&trace(name), Inference::On)
}

fn machine(name: &str) -> Spec {
    named(name).unwrap().unwrap()
}

fn request(cpus: u16) -> Request {
    Request {
        cpus,
        policy: ReplayPolicy::RestartAware,
        clock: Clock::Tsc,
        seed: 0,
        seconds: Some(1e3),
    }
}

/// On a machine like the one that recorded the trace, under its kernel's policy, to 5 %. No timer
/// fires early.
#[test]
fn device_writes_are_as_recorded() {
    for name in ["idle", "nginx", "pipe-one-cpu", "pipe-two-cpus", "two-groups-aligned"] {
        let done = project(&streams(name), &machine("host"), &request(2)).unwrap();
        let recorded = done.recorded_writes.unwrap();
        let off = 100.0 * (done.device_writes as f64 / recorded as f64 - 1.0);
        assert!(off.abs() <= 5.0, "{name}: {} writes, {recorded} recorded", done.device_writes);
        assert_eq!(done.early, 0, "{name}");
        assert_eq!(done.cpus, 2);
    }
    // Another policy writes less, so the agreement above can fail.
    let lazy = Request { policy: ReplayPolicy::Lazy, ..request(2) };
    let lazy = project(&streams("nginx"), &machine("host"), &lazy).unwrap();
    assert!(10 * lazy.device_writes < 7 * lazy.recorded_writes.unwrap(), "{lazy:?}");
}

/// Another seed draws other events.
#[test]
fn a_projection_is_deterministic() {
    let (streams, machine) = (streams("nginx"), machine("ivybridge-ex-16s"));
    let short = Request { seconds: Some(0.02), ..request(60) };
    let run = |request: &Request| project(&streams, &machine, request).unwrap();
    let once = run(&short);
    assert_eq!(once, run(&short));
    assert_ne!(once.digest, run(&Request { seed: 1, ..short }).digest);
    assert!((once.seconds - 0.02).abs() < 1e-9, "{}", once.seconds);
}

/// Each CPU has as many operations as the recorded ones, with the recorded share of remote ones.
#[test]
fn only_the_cost_of_sharing_grows_with_the_machine() {
    let (streams, machine) = (streams("pipe-two-cpus"), machine("ivybridge-ex-16s"));
    let run = |cpus, clock| {
        let request = Request { clock, seconds: Some(0.06), ..request(cpus) };
        project(&streams, &machine, &request).unwrap()
    };
    let [small, large] = [2, 240].map(|cpus| run(cpus, Clock::Tsc));
    let each = |done: &Projection| done.operations as f64 / f64::from(done.cpus);
    let remote = |done: &Projection| done.remote_operations as f64 / done.operations as f64;
    assert!((each(&large) / each(&small) - 1.0).abs() < 0.25, "{small:?} {large:?}");
    assert!((remote(&large) - remote(&small)).abs() < 0.1, "{small:?} {large:?}");
    assert!(large.percent.timer_code > small.percent.timer_code);
    let (direct, combined) = (run(240, Clock::Hpet), run(240, Clock::Combined));
    let read = |done: &Projection| done.percent.clock_read;
    assert!(read(&direct) > read(&combined) && read(&combined) > read(&large));
    for done in [&small, &large, &direct, &combined] {
        let parts: f64 = done.percent.parts().iter().map(|(_, percent)| percent).sum();
        assert!((parts - done.percent.timer_code).abs() < 0.01, "{:?}", done.percent);
        assert!(done.percent.timer_code <= 100.0);
    }
}

#[test]
fn the_first_limit_is_named_with_its_number_of_cpus() {
    let (trace, machine) = (trace("nginx"), machine("ivybridge-ex-16s"));
    let streams = Streams::of(&trace, Inference::On);
    let run = |cpus| {
        let request = Request { clock: Clock::Hpet, seconds: Some(0.02), ..request(cpus) };
        project(&streams, &machine, &request).unwrap()
    };
    let points = [480, 2].map(run).to_vec();
    let projected = Projected::new(&trace, &machine, 0, points);
    let [limit] = &projected.limits[..] else { panic!("{:?}", projected.limits) };
    assert!(limit.starts_with("restart-aware: scales to 2 CPUs: "), "{limit}");
    assert!(limit.contains("clock reads first") && limit.contains("cannot follow"), "{limit}");
}

#[test]
fn an_impossible_projection_is_refused_with_advice() {
    let machine = machine("host");
    let mut streams = streams("idle");
    let linux = Request { policy: ReplayPolicy::Linux71, ..request(2) };
    let refused = project(&streams, &machine, &linux).unwrap_err().to_string();
    assert!(refused.contains("linux-7.1") && refused.contains("lazy"), "{refused}");
    streams.lives.iter_mut().for_each(Vec::clear);
    let empty = project(&streams, &machine, &request(2)).unwrap_err().to_string();
    assert!(empty.contains("no operations"), "{empty}");
}

#[test]
fn impossible_numbers_of_cpus_and_of_seconds_are_refused() {
    let (streams, machine) = (streams("idle"), machine("host"));
    for cpus in [0, 4_097, u16::MAX] {
        let refused = project(&streams, &machine, &request(cpus)).unwrap_err().to_string();
        assert!(refused.contains(&format!("{cpus} CPUs; ask for 1 to 4096")), "{refused}");
    }
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let wrong = Request { seconds: Some(seconds), ..request(2) };
        assert!(project(&streams, &machine, &wrong).is_err(), "{seconds}");
    }
}
