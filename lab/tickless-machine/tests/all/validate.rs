//! The comparison with a real machine: the fit recovers prices, files round-trip.

use tickless_machine::machines;
use tickless_machine::spec::{Origin, Parameter, Spec};
use tickless_machine::validate::fit::fit;
use tickless_machine::validate::{Scene, SideResult, per_operation, simulate};

fn host() -> Spec {
    machines::named("host").unwrap().unwrap()
}

/// Goal: from the times of a machine's scenes the fit recovers its prices, and predicts the times
/// of its other scenes.
#[test]
fn fit_recovers_prices() {
    for [transfer, hold, share, migrates, overlap, section] in [
        [40.0, 0.0, 0.0, 0.0, 0.0, 30.0],
        [90.0, 60.0, 0.0, 0.0, 0.0, 12.0],
        [80.0, 0.0, 0.3, 1.0, 9.0, 20.0],
    ] {
        let fitted = |spec: Spec, key: &str, value| {
            let origin = Origin::Fitted("a scene".to_string());
            spec.with_parameter(key, Parameter { value, origin })
        };
        let real = [
            ("line.node_ns", transfer),
            ("line.near_ns", transfer),
            ("line.far_ns", transfer),
            ("line.hold_ns", hold),
            ("line.request_share", share),
            ("line.migrates", migrates),
            ("line.overlap_ns", overlap),
            ("cpu.section_ns", section),
        ]
        .into_iter()
        .fold(host(), |spec, (key, value)| fitted(spec, key, value));
        let takes = |scene| simulate::play(&real, scene, 200, 1).unwrap();
        let fitted = fit(&host(), takes).unwrap();
        let found = |key: &str| fitted.value(key);
        assert!((found("line.node_ns") / transfer - 1.0).abs() < 0.05, "{}", found("line.node_ns"));
        assert!((found("line.hold_ns") - hold).abs() < 5.0, "{}", found("line.hold_ns"));
        let found_share = found("line.request_share");
        assert!((found_share - share).abs() < 0.05, "{found_share}");
        assert_eq!(found("line.migrates"), migrates);
        let found_overlap = found("line.overlap_ns");
        assert!((found_overlap - overlap).abs() < 1.0, "{found_overlap}");
        assert!((found("cpu.section_ns") - section).abs() < 1.0, "{}", found("cpu.section_ns"));
        // The two sides of a queue fall into step, which a small change of a price can prevent.
        let are_steady = |scene: &Scene| !matches!(scene, Scene::Queue | Scene::QueueApart);
        for scene in Scene::PREDICTED.into_iter().filter(are_steady) {
            let [theirs, ours] = [&real, &fitted].map(|spec| simulate::plays(spec, scene).unwrap());
            for (theirs, ours) in theirs.iter().zip(&ours) {
                assert!((ours / theirs - 1.0).abs() < 0.1, "{scene:?}: {ours} for {theirs}");
            }
        }
        let set = fitted.parameters().filter(|(_, one)| matches!(one.origin, Origin::Fitted(_)));
        assert_eq!(set.count(), 8, "three distances, four of how lines pass, the section");
    }
}

#[test]
fn endless_play_is_an_error() {
    // A thousand rounds of at least 20 ms.
    let keys = ["line.node_ns", "line.near_ns", "line.far_ns"];
    let slow = keys.iter().fold(host(), |spec, key| spec.with(key, 20e6));
    let error = simulate::play(&slow, Scene::PingPong, 1_000, 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    let message = "ping_pong.round_trip does not end within 10 s of simulated time";
    assert_eq!(error.to_string(), message);
}

/// Goal: all CPUs contend for a line: a holding of a ticket lock takes longer with more CPUs, and
/// an addition is no cheaper than between two.
#[test]
fn all_cpus_contend() {
    let takes = |cores: f64, scene: Scene| {
        let spec = host()
            .with("topology.cores_per_socket", cores)
            .with("topology.threads_per_core", 1.0)
            .with("topology.sockets", 1.0);
        assert_eq!(scene.sides(usize::from(spec.costs().topology.cpus())), cores as usize);
        simulate::play(&spec, scene, 200, 1).unwrap()
    };
    let lock = [2.0, 4.0, 8.0].map(|cores| takes(cores, Scene::TicketLockByAll));
    assert!(lock[0] < lock[1] && lock[1] < lock[2], "{lock:?}");
    let add = [2.0, 8.0].map(|cores| takes(cores, Scene::CounterByAll));
    assert!(add[1] >= 0.9 * add[0], "{add:?}");
}

#[test]
fn time_is_averaged_over_active_sides() {
    let both = [SideResult { ops: 10, ns: 300.0 }, SideResult { ops: 20, ns: 300.0 }];
    assert_eq!(per_operation(&both), 10.0);
    assert_eq!(per_operation(&[SideResult::default(), SideResult { ops: 20, ns: 300.0 }]), 15.0);
    assert_eq!(per_operation(&[SideResult::default(); 2]), 0.0);
}
