//! Replays recordings of Linux 6.12 and 7.2, whose policies differ.

use crate::support::{parsed, replay, sample_text, text_without};
use tickless_trace::replay::{Inference, Measure, ReplayPolicy, summarise, upgraded};

/// Device writes and interrupts that expired nothing, each as recorded and as replayed with the
/// policy of the recording kernel. Then the writes replayed if `hrtimer_rearm` is not in the trace.
type Row = (&'static str, [u64; 2], [u64; 2], u64);

#[rustfmt::skip]
const KERNELS: [Row; 11] = [
    ("6.12-idle", [83, 83], [8, 8], 83),
    ("6.12-periodic", [1170, 1184], [0, 0], 1184),
    ("6.12-hack2x5", [497, 497], [0, 0], 497),
    ("6.12rt-past", [406, 406], [0, 0], 406),
    ("7.2-idle", [418, 418], [4, 4], 418),
    ("7.2-periodic", [1146, 1146], [1, 1], 1146),
    ("7.2-past", [28, 28], [2, 2], 28),
    ("7.2-ping00-other", [170, 170], [0, 0], 170),
    ("7.2-hack2x5", [2481, 2480], [674, 674], 2426),
    ("7.2-tool-rec", [1501, 1514], [233, 235], 1668),
    ("7.2-tool-late", [1317, 1335], [255, 255], 1498),
];

/// Returns a recording's text. In those of 6.12, the probe on the device's write takes the place of
/// the register that other machines write.
fn text(name: &str) -> String {
    let text = sample_text(&format!("kernels/{name}"));
    match name.starts_with("6.12") {
        true => text.replace(": dev: ", ": write_msr: 6e0, value 1 "),
        false => text_without(&text, ": dev: "),
    }
}

/// Goal: the kernel's own policy, replayed unasked, writes the device as often as the kernel did,
/// and has as many interrupts that expire nothing: both within 3 %.
#[test]
fn each_kernels_policy_replays_its_recordings() {
    let now = KERNELS.map(|(name, ..)| {
        let text = text(name);
        let agreement = replay(&text).agreement.unwrap();
        let policy = if name.starts_with('6') { "restart-aware" } else { "linux-7.1" };
        assert_eq!(agreement.policy, policy, "{name}");
        let of = |name: &str| {
            let mut measures = agreement.measures.iter();
            let Measure { recorded, replayed, .. } =
                *measures.find(|measure| measure.measure == name).unwrap();
            [recorded, replayed]
        };
        let [writes, spurious] = ["device_writes", "spurious_wakeups"].map(of);
        let off = |[recorded, replayed]: [u64; 2], of: u64| 100 * recorded.abs_diff(replayed) / of;
        assert!(off(writes, writes[0]) < 3, "{name}: {agreement:?}");
        assert!(off(spurious, of("wakeups")[0]) < 3, "{name}: {agreement:?}");
        let blind = text_without(&text, ": hrtimer_rearm: ");
        let policy = ReplayPolicy::ALL.into_iter().find(|known| known.name() == policy).unwrap();
        let blind = summarise(parsed(blind), &[policy], Inference::On).policies[0].device_writes;
        (name, writes, spurious, blind)
    });
    assert_eq!(now, KERNELS, "now:\n{now:?}");
}

/// Writes, wakeups and spurious wakeups with the slice timer on, and with it off.
fn counts(text: &str) -> [[u64; 3]; 2] {
    let results = upgraded(&parsed(text), Inference::On).unwrap();
    let [on, off] = &results[..] else { panic!("{results:?}") };
    assert!(on.slice_timer && !off.slice_timer);
    [on, off].map(|it| [it.device_writes, it.wakeups, it.spurious_wakeups])
}

/// Goal: recordings of 6.12 predict what 7.2 does with the same load, and a recording of 7.2 from
/// which its slice timer is left out predicts itself.
#[test]
fn recordings_of_6_12_predict_those_of_7_2() {
    let now = ["6.12-hack1x5", "6.12-ping00", "7.2-tool-late"]
        .map(|name| (name, counts(&sample_text(&format!("kernels/{name}")))));
    // Recorded on 7.2 with the timer on: 1261 writes, 861 interrupts, 379 of them for nothing; 257,
    // 245, 155; and 1317, 1017, 255. With it off, the first two: 224, 223, 0 and 100, 95, 0.
    let want = [
        ("6.12-hack1x5", [[1174, 952, 415], [193, 192, 0]]),
        ("6.12-ping00", [[289, 257, 123], [93, 88, 0]]),
        ("7.2-tool-late", [[1191, 1003, 252], [624, 608, 0]]),
    ];
    assert_eq!(now, want, "now:\n{now:?}");
    assert!(upgraded(&parsed(sample_text("idle")), Inference::On).is_none());
}
