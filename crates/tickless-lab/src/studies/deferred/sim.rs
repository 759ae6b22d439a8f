//! The simulated run of the study `deferred`: its figures, plots, answers and notes.

use super::{STUDY, model, plot_wakes};
use crate::LabError;
use crate::progress::Progress;
use crate::studies::sim::{self, shown};
use crate::studies::{Request, StudyResult};

pub fn run(request: &Request, progress: &dyn Progress) -> Result<StudyResult, LabError> {
    sim::reject_cpus(request, "deferred")?;
    let spec = sim::machine(request, "atom-e3825", STUDY.needs)?;
    let mut result = sim::begin("deferred", request, progress, &[&spec]);
    sim::add(&mut result, request, model::cells(&spec, model::SIDES))?;
    plot_wakes(&mut result, "unbound");
    answers(&mut result);
    // No parameter of this machine is fitted, so there is nothing to fit again.
    sim::add_sensitivity(&mut result, request, &spec, |spec| Ok(spec.clone()), STUDY.cells);
    result.notes.push(
        "How far the two CPUs' ticks are apart decides, and nobody knows it of the published \
         machine: 20 skews of up to 10 us are drawn, and the claim is in how many of them the \
         average of an unbound thread falls more than that of bound ones. Only sleeps that end \
         beside a tick notice anything."
            .to_string(),
    );
    result.notes.push("The seed draws the skews and when the timers expire".to_string());
    Ok(result)
}

fn answers(result: &mut StudyResult) {
    let signs = |hz: u32| {
        let of = |what: &str| shown(result, &format!("{hz}hz.{what}.change"));
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
        shown(result, "1000hz.contrast.seeds"),
        shown(result, "250hz.contrast.seeds"),
    );
    result.answer("Does the average fall 20 to 70 us, and does the maximum stay?", answer);
}
