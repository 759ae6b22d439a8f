//! Holding the model against a real machine: the fit finds prices again, files round-trip.

use tickless_machine::machines::{self, FILES};
use tickless_machine::spec::{Origin, Spec};
use tickless_machine::validate::fit::{Measured, fit};
use tickless_machine::validate::{Scene, SideResult, per_operation, simulate};

fn host() -> Spec {
    machines::named("host").unwrap().unwrap()
}

/// Goal: whatever prices a machine has, the fit finds them in what its ping-pongs take: fitted
/// prices are what was put in, and predictions are those of the machine itself.
#[test]
fn prices_are_found_again() {
    for (transfer, hold, section) in [(40.0, 0.0, 30.0), (90.0, 60.0, 12.0)] {
        let keys = ["line.node_ns", "line.near_ns", "line.far_ns"];
        let real = keys.iter().fold(host(), |spec, key| spec.with(key, transfer));
        let real = real.with("line.hold_ns", hold).with("cpu.section_ns", section);
        let takes = |part| simulate::play(&real, part, 200, 1).unwrap();
        let seen = Measured {
            transfer: takes(Scene::Transfer),
            round_trip: takes(Scene::PingPong),
            own_timer: takes(Scene::OwnTimer),
        };
        let fitted = fit(&host(), seen).unwrap();
        let found = |key: &str| fitted.value(key);
        assert!((found("line.node_ns") / transfer - 1.0).abs() < 0.05, "{}", found("line.node_ns"));
        assert!((found("line.hold_ns") - hold).abs() < 5.0, "{}", found("line.hold_ns"));
        assert!((found("cpu.section_ns") - section).abs() < 1.0, "{}", found("cpu.section_ns"));
        for part in Scene::PREDICTED {
            let [theirs, ours] =
                [&real, &fitted].map(|spec| simulate::figure(spec, part).unwrap().value);
            assert!((ours / theirs - 1.0).abs() < 0.1, "{part:?}: {ours} for {theirs}");
        }
        let set = fitted.parameters().filter(|(_, one)| matches!(one.origin, Origin::Fitted(_)));
        assert_eq!(set.count(), 5, "three distances, the hold time, the section");
    }
}

/// Goal: a play is a function of its seed, and every scene comes to an end.
#[test]
fn plays_repeat() {
    for part in [&Scene::FITTED[..], &Scene::PREDICTED, &Scene::CONTENDED].into_iter().flatten() {
        let play = |seed| simulate::play(&host(), *part, 100, seed).unwrap();
        assert!(play(3) > 0.0, "{part:?}");
        assert_eq!(play(3).to_bits(), play(3).to_bits(), "{part:?}");
    }
}

/// Goal: a scene that prices keep from its end is an error with words, never a figure of zero.
#[test]
fn a_play_without_an_end_is_an_error() {
    // A thousand rounds of at least 20 ms.
    let keys = ["line.node_ns", "line.near_ns", "line.far_ns"];
    let slow = keys.iter().fold(host(), |spec, key| spec.with(key, 20e6));
    let error = simulate::play(&slow, Scene::PingPong, 1_000, 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    let said = "ping_pong.round_trip does not end within 10 s of simulated time";
    assert_eq!(error.to_string(), said);
}

/// Goal: a line that all CPUs want goes round among all of them: a holding of a ticket lock takes
/// longer the more CPUs queue for it, and an addition is no cheaper than between two.
#[test]
fn all_cpus_contend() {
    let takes = |cores: f64, part| {
        let spec = host()
            .with("topology.cores_per_socket", cores)
            .with("topology.threads_per_core", 1.0)
            .with("topology.sockets", 1.0);
        assert_eq!(part_sides(part, spec.costs().topology.cpus()), cores as usize);
        simulate::play(&spec, part, 200, 1).unwrap()
    };
    let lock = [2.0, 4.0, 8.0].map(|cores| takes(cores, Scene::TicketLockByAll));
    assert!(lock[0] < lock[1] && lock[1] < lock[2], "{lock:?}");
    let add = [2.0, 8.0].map(|cores| takes(cores, Scene::CounterByAll));
    assert!(add[1] >= 0.9 * add[0], "{add:?}");
}

fn part_sides(part: Scene, cpus: u16) -> usize {
    part.sides(usize::from(cpus))
}

/// Goal: what a scene took is averaged over the sides that did something.
#[test]
fn sides_are_averaged() {
    let both = [SideResult { ops: 10, ns: 300.0 }, SideResult { ops: 20, ns: 300.0 }];
    assert_eq!(per_operation(&both), 10.0);
    assert_eq!(per_operation(&[SideResult::default(), SideResult { ops: 20, ns: 300.0 }]), 15.0);
    assert_eq!(per_operation(&[SideResult::default(); 2]), 0.0);
}

/// Goal: a machine that is written is the same machine when it is read.
#[test]
fn written_files_can_be_read() {
    for (name, text) in FILES {
        let spec = Spec::parse(name, text).unwrap();
        let again = Spec::parse(name, &spec.to_toml()).unwrap();
        assert_eq!(again, spec, "{name}");
        assert_eq!(again.fingerprint(), spec.fingerprint());
    }
}
