//! What the simulated studies say about the questions that the published reports left open, with
//! the figures of the run.

use super::Study;
use crate::text::{figure, grouped};

/// The figure of a cell, or a dash.
fn value(study: &Study, id: &str) -> String {
    study.cell(id).map_or_else(|| "-".to_string(), |cell| grouped(cell.value))
}

/// One cell's value for another's, less one, in percent.
fn percent(study: &Study, id: &str, of: &str) -> String {
    let [value, of] = [id, of].map(|id| study.cell(id).map_or(f64::NAN, |cell| cell.value));
    format!("{:.1} %", 100.0 * (value / of - 1.0))
}

/// Those of `rearm`.
pub fn rearm(study: &mut Study) {
    study.answer(
        "Is a chance to program lost if removals do not program?",
        format!(
            "No: the device stays armed for the removed timer, comes early for nothing, and is \
             armed for the rest then. That costs {} wakeups a second here, one for each tick of a \
             busy CPU, and saves {} device writes in every round trip.",
            value(study, "lazy.spurious_wakeups_per_s"),
            value(study, "eager.device_writes_per_round_trip"),
        ),
    );
    study.answer(
        "Why is it a regression: is programming expensive, or is a wakeup lost?",
        format!(
            "Programming is. Eager removal writes {} times per round trip, lazy {}; nothing else \
             differs, and the round trip takes {} longer. Without the soft-lockup detector's timer \
             behind the tick's it is {} writes.",
            value(study, "eager.device_writes_per_round_trip"),
            value(study, "lazy.device_writes_per_round_trip"),
            percent(study, "eager.us_per_round_trip", "lazy.us_per_round_trip"),
            value(study, "eager.unwatched.device_writes_per_round_trip"),
        ),
    );
    study.answer(
        "Is it more than 35 %, and are there better tools to see it?",
        format!(
            "35 % is the mean with one run of 9.3 s among seven of 7; without that run it is 30 %. \
             Simulated it is {}, from writes alone. Better than seconds is to count device writes, \
             which are the same on a busy machine: this study, and tickless replay on a recorded \
             trace.",
            percent(study, "eager.us_per_round_trip", "lazy.us_per_round_trip"),
        ),
    );
}

/// Those of `clock`.
pub fn clock(study: &mut Study) {
    study.answer(
        "What does combining leave to be gained?",
        format!(
            "At 480 CPUs {} % of the time is in the read directly, {} % combined. If ticks were \
             skewed instead, it would be {} % without combining, and {} jobs a minute against {}; \
             but every CPU's tick would then be a wakeup of its own.",
            value(study, "480.hpet.read_percent"),
            value(study, "480.combined.read_percent"),
            value(study, "480.hpet.skewed.read_percent"),
            value(study, "480.hpet.skewed.jobs_per_min"),
            value(study, "480.combined.jobs_per_min"),
        ),
    );
    study.answer(
        "Who waits longest?",
        format!(
            "One read in a thousand takes {} ns or longer at 480 CPUs directly, {} combined; at \
             72 CPUs {} and {}.",
            value(study, "480.hpet.read_p999"),
            value(study, "480.combined.read_p999"),
            value(study, "72.hpet.read_p999"),
            value(study, "72.combined.read_p999"),
        ),
    );
    let few = study.plots.iter().find(|plot| plot.id == "read_percent").and_then(|plot| {
        let super::plot::Shape::Curve { lines, .. } = &plot.shape else { return None };
        let [direct, combined] = [lines.first()?, lines.get(1)?];
        let pays = direct.points.iter().zip(&combined.points).find(|(d, c)| c[1] < d[1])?;
        Some((pays.0[0], pays.0[1], pays.1[1]))
    });
    if let Some((cpus, direct, combined)) = few {
        study.answer(
            "Is a threshold needed, below which everybody reads by themselves?",
            format!(
                "No: combining takes less from {} CPUs on ({} % of the time against {}).",
                figure(cpus),
                figure(combined),
                figure(direct),
            ),
        );
    }
}

/// Those of `cancel`.
pub fn cancel(study: &mut Study) {
    let end = |name: &str| {
        let plot = study.plots.iter().find(|plot| plot.id == "cost")?;
        let super::plot::Shape::Curve { lines, .. } = &plot.shape else { return None };
        let line = lines.iter().find(|line| line.name == name)?;
        line.points.last().copied()
    };
    let [before, after] = ["before", "after"].map(|name| end(name).unwrap_or([f64::NAN; 2]));
    let answer = format!(
        "It grows by a remote line for each CPU: {} cycles at 32 CPUs, {} at {}. Looking at one \
         base takes {} at any number; the form for timers that do not arm themselves {}.",
        value(study, "32p.before.warm"),
        grouped(before[1]),
        grouped(before[0]),
        grouped(after[1]),
        value(study, "4p.single_shot.warm"),
    );
    study.answer("Why is it so bad on 16 nodes, and what would more CPUs do?", answer);
}

/// Those of `deferred`.
pub fn deferred(study: &mut Study) {
    let signs = |hz: u32| {
        let of = |what: &str| value(study, &format!("{hz}hz.{what}.change"));
        format!(
            "average {} % and maximum {} %; with -S {} and {} %",
            of("unbound.average"),
            of("unbound.max"),
            of("bound.average"),
            of("bound.max")
        )
    };
    let answer = format!(
        "At 1000 Hz, over all phases and 20 skews: {}. At 250 Hz: {}. The unbound average falls \
         more than the bound one in {} of 20 skews, and in {} at 250 Hz: they decide the sign.",
        signs(1_000),
        signs(250),
        value(study, "1000hz.contrast.seeds"),
        value(study, "250hz.contrast.seeds"),
    );
    study.answer("Does the average fall 20 to 70 us, and does the maximum stay?", answer);
}

/// Those of `phase`.
pub fn phase(study: &mut Study) {
    let of = |id: &str| value(study, id);
    let power = format!(
        "Apart takes less energy at more power: {} s and {} J together, {} s and {} J 50 ms apart, \
         since half of what a core draws does not depend on its work. Of a later version +15 % \
         power and -7 to -18 % energy were reported; simulated for that machine it is {} W and {} \
         J apart. What it costs is wakeups: one for each group in a period instead of one for all.",
        of("together.aligned.seconds"),
        of("together.aligned.joules"),
        of("together.50ms.seconds"),
        of("together.50ms.joules"),
        of("later.apart.watts"),
        of("later.apart.joules"),
    );
    let busy = format!(
        "Yes, once workers hardly wait: half a period apart is {} times as fast at 10 %, {} at 25, \
         {} at 50, {} at 75 and {} at 100 % of the time for each worker.",
        of("gain.10_percent"),
        of("gain.25_percent"),
        of("gain.50_percent"),
        of("gain.75_percent"),
        of("gain.100_percent"),
    );
    let where_to = format!(
        "Where the first expiry falls decides, so it should not be left to chance: with four \
         groups aligned takes {} s, random {}, spread {}. Groups of 97 and 103 ms drift past each \
         other, {} s.",
        of("four_groups.aligned.seconds"),
        of("four_groups.random.seconds"),
        of("four_groups.spread.seconds"),
        of("together.97_and_103ms.seconds"),
    );
    study.answer("Performance against power: what do both numbers say?", power);
    study.answer("Is there no benefit and no loss at high utilisation?", busy);
    study.answer(
        "Why did one of three runs gain nothing, and where should the phase be set?",
        where_to,
    );
}
