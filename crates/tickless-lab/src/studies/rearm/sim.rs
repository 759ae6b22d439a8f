//! The simulated run of the study `rearm`: its figures, plots, answers and notes.

use super::{STUDY, model, plot_writes};
use crate::LabError;
use crate::progress::Progress;
use crate::studies::sim::{self, SEED_UNUSED, shown};
use crate::studies::{Request, StudyResult};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "rearm")?;
    let spec = sim::machine(request, "x5675-2s", STUDY.needs)?;
    let mut result = sim::begin("rearm", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    sim::add_sensitivity(&mut result, request, &spec, model::refit, STUDY.cells);
    plot_writes(&mut result);
    answers(&mut result);
    result.notes.push(
        "Half of the eager policy's eight writes per round trip are made while the other CPU \
         works, so only the others are waited for. The tasks are on two sockets, because together \
         the published ones used less than 100 % of the time."
            .to_string(),
    );
    result.notes.push(SEED_UNUSED.to_string());
    Ok(result)
}

fn answers(result: &mut StudyResult) {
    let [eager, lazy] =
        ["eager", "lazy"].map(|of| result.value(&format!("{of}.us_per_round_trip")));
    let slower = format!("{:.1} %", 100.0 * (eager / lazy - 1.0));
    result.answer(
        "Is a chance to program lost if removals do not program?",
        format!(
            "No: the device stays armed for the removed timer, comes early for nothing, and is \
             armed for the rest then. That costs {} wakeups a second here, one for each tick of a \
             busy CPU, and saves {} device writes in every round trip.",
            shown(result, "lazy.spurious_wakeups_per_s"),
            shown(result, "eager.device_writes_per_round_trip"),
        ),
    );
    result.answer(
        "Why is it a regression: is programming expensive, or is a wakeup lost?",
        format!(
            "Programming is. Eager removal writes {} times per round trip, lazy {}; nothing else \
             differs, and the round trip takes {} longer. Without the soft-lockup detector's timer \
             behind the tick's it is {} writes.",
            shown(result, "eager.device_writes_per_round_trip"),
            shown(result, "lazy.device_writes_per_round_trip"),
            slower,
            shown(result, "eager.unwatched.device_writes_per_round_trip"),
        ),
    );
    result.answer(
        "Is it more than 35 %, and are there better tools to see it?",
        format!(
            "35 % is the mean with one run of 9.3 s among seven of 7; without that run it is 30 %. \
             Simulated it is {}, from writes alone. Better than seconds is to count device writes, \
             which are the same on a busy machine: this study, and tickless replay on a recorded \
             trace.",
            slower,
        ),
    );
}
