//! The keys of a machine's file.

/// What a number may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// How many of something.
    Count,
    /// More than nothing.
    Positive,
    /// A time or another amount, zero included.
    Amount,
    /// A processor's clock rate, in GHz.
    Clock,
}

/// What every file has.
const REQUIRED: &[(&str, Kind)] = &[
    ("topology.sockets", Kind::Count),
    ("topology.cores_per_socket", Kind::Count),
    ("topology.threads_per_core", Kind::Count),
    ("topology.sockets_per_group", Kind::Count),
    ("cpu.ghz", Kind::Clock),
    ("cpu.pause_ns", Kind::Positive),
    ("cpu.tsc_ns", Kind::Amount),
    ("cpu.section_ns", Kind::Amount),
    ("cpu.section_lines", Kind::Count),
    ("power.fixed_watts", Kind::Amount),
    ("power.busy_watts", Kind::Amount),
    ("line.hit_ns", Kind::Positive),
    ("line.store_ns", Kind::Positive),
    ("line.atomic_ns", Kind::Amount),
    ("line.node_ns", Kind::Positive),
    ("line.near_ns", Kind::Positive),
    ("line.far_ns", Kind::Positive),
    ("line.load_share", Kind::Positive),
    ("line.clean_node_share", Kind::Positive),
    ("line.clean_far_share", Kind::Positive),
    ("line.store_share", Kind::Positive),
    ("line.memory_ns", Kind::Positive),
    ("line.port_ns", Kind::Amount),
    ("line.directory_ns", Kind::Amount),
    ("line.hold_ns", Kind::Amount),
    ("counter.latency_ns", Kind::Amount),
    ("counter.service_ns", Kind::Amount),
    ("event.program_ns", Kind::Amount),
    ("irq.entry_ns", Kind::Amount),
    ("irq.exit_ns", Kind::Amount),
    ("irq.send_ns", Kind::Amount),
    ("irq.near_ns", Kind::Amount),
    ("irq.far_ns", Kind::Amount),
    ("os.syscall_ns", Kind::Amount),
    ("os.switch_ns", Kind::Amount),
    ("os.wake_ns", Kind::Amount),
    ("os.idle_ns", Kind::Amount),
    ("os.tick_ns", Kind::Amount),
    ("os.timekeeping_ns", Kind::Amount),
];

/// What a machine's file may say of the workload that a study ran on it.
const WORKLOAD: &[(&str, Kind)] = &[
    ("workload.hz", Kind::Positive),
    ("workload.reads_per_tick", Kind::Count),
    ("workload.jobs_per_cpu_minute", Kind::Positive),
    ("workload.timers_per_tick", Kind::Count),
    ("workload.pipe_ns", Kind::Amount),
    ("workload.expiry_ns", Kind::Positive),
    ("workload.tick_skew_ns", Kind::Amount),
    ("workload.next_timer_ms", Kind::Positive),
    ("workload.watchdog_ms", Kind::Positive),
    ("workload.timer_work_ns", Kind::Amount),
    ("workload.work_s", Kind::Positive),
];

/// Keys of former versions, and what says it now.
const FORMER: &[(&str, &str)] = &[
    ("cpu.watts", "power.fixed_watts and power.busy_watts, for a core instead of a thread"),
    (
        "line.dirty_ns",
        "line.load_share, line.clean_node_share, line.clean_far_share and line.store_share",
    ),
    ("workload.stall_ns", "nothing: no study reads it"),
];

/// What says now what this key of a former version said.
pub(crate) fn instead_of(key: &str) -> Option<&'static str> {
    FORMER.iter().find(|(former, _)| *former == key).map(|(_, now)| *now)
}

/// What each idle state has.
pub(crate) const IDLE: [&str; 3] = ["exit_us", "residency_us", "watts"];

pub(crate) fn required() -> impl Iterator<Item = &'static str> {
    REQUIRED.iter().map(|(key, _)| *key)
}

/// What a key's number may be; `None` for a key that nobody reads.
pub(crate) fn kind(key: &str) -> Option<Kind> {
    if let Some((_, kind)) = REQUIRED.iter().chain(WORKLOAD).find(|(known, _)| *known == key) {
        return Some(*kind);
    }
    if let Some(busy) = key.strip_prefix("smt.rate_") {
        return busy
            .parse()
            .is_ok_and(|busy: u16| (2..=64).contains(&busy))
            .then_some(Kind::Positive);
    }
    let (_, part) = key.strip_prefix("idle.")?.split_once('.')?;
    IDLE.contains(&part).then_some(Kind::Amount)
}
