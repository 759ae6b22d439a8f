//! What the kernel tells of the processor's frequency and idle states, of the limit of real-time
//! threads, and of devices' interrupts.

use super::{refusal, text};
use crate::doctor::facts::{Governor, IdleState, Interrupt, RtLimit, Seen};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const CPUS: &str = "/sys/devices/system/cpu";

/// Returns the folders in `folder` whose names are `prefix` and a number.
fn numbered(folder: &Path, prefix: &str) -> Seen<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| refusal(folder, &error))?;
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(prefix));
        name.is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    Ok(entries.flatten().map(|entry| entry.path()).filter(is_one).collect())
}

pub(super) fn word(path: &Path) -> Seen<String> {
    text(path).map(|text| text.trim().to_string())
}

pub(super) fn number<T: std::str::FromStr>(path: &Path) -> Seen<T> {
    let text = word(path)?;
    text.parse().map_err(|_| format!("{} is no number: {text:?}", path.display()))
}

pub(super) fn governors() -> Seen<Vec<Governor>> {
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for cpu in numbered(Path::new(CPUS), "cpu")? {
        let folder = cpu.join("cpufreq");
        if folder.exists() {
            let of = |file: &str| word(&folder.join(file));
            *found.entry((of("scaling_driver")?, of("scaling_governor")?)).or_default() += 1;
        }
    }
    if found.is_empty() {
        return Err("the kernel does not set the CPUs' frequency here (no cpufreq): on a virtual \
                    machine the host does"
            .to_string());
    }
    let governor = |((driver, governor), cpus)| Governor { driver, governor, cpus };
    Ok(found.into_iter().map(governor).collect())
}

/// Returns the idle states, with how often CPUs have entered them since the start.
pub(super) fn idle_states() -> Seen<Vec<IdleState>> {
    let mut found: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for cpu in numbered(Path::new(CPUS), "cpu")? {
        for state in numbered(&cpu.join("cpuidle"), "state").unwrap_or_default() {
            let exit_us = number(&state.join("latency"))?;
            let entered: u64 = number(&state.join("usage"))?;
            *found.entry((exit_us, word(&state.join("name"))?)).or_default() += entered;
        }
    }
    if found.is_empty() {
        return Err("the kernel counts no idle states here (no cpuidle): on a virtual machine \
                    the host chooses them"
            .to_string());
    }
    let state = |((exit_us, name), entered)| IdleState { name, exit_us, entered };
    Ok(found.into_iter().map(state).collect())
}

/// Returns how often CPUs entered each state between two calls of [`idle_states`].
pub(super) fn entered(
    before: Seen<Vec<IdleState>>,
    after: Seen<Vec<IdleState>>,
) -> Seen<Vec<IdleState>> {
    let (before, mut after) = (before?, after?);
    for state in &mut after {
        let known = before.iter().find(|it| (&it.name, it.exit_us) == (&state.name, state.exit_us));
        state.entered -= known.map_or(0, |it| it.entered).min(state.entered);
    }
    Ok(after)
}

pub(super) fn rt_limit() -> Seen<RtLimit> {
    let of = |file: &str| PathBuf::from(format!("/proc/sys/kernel/{file}"));
    Ok(RtLimit {
        runtime_us: number(&of("sched_rt_runtime_us"))?,
        period_us: number(&of("sched_rt_period_us"))?,
    })
}

/// Returns the interrupts of devices, with how often each CPU had them since the start.
pub(super) fn interrupts() -> Seen<Vec<Interrupt>> {
    Ok(devices(&text(Path::new("/proc/interrupts"))?))
}

/// Parses the rows of `/proc/interrupts` that have a number: the others are of the kernel itself.
fn devices(text: &str) -> Vec<Interrupt> {
    let device = |line: &str| {
        let (number, rest) = line.trim().split_once(':')?;
        let number = number.parse().ok()?;
        let words = rest.split_whitespace();
        let counts: Vec<u64> = words.clone().map_while(|word| word.parse().ok()).collect();
        let name = words.last().unwrap_or("?").to_string();
        Some(Interrupt { number, name, counts, allowed: "?".to_string() })
    };
    text.lines().skip(1).filter_map(device).collect()
}

/// Returns what interrupts came between two calls of [`interrupts`], and where each may come.
pub(super) fn came(
    before: Seen<Vec<Interrupt>>,
    after: Seen<Vec<Interrupt>>,
) -> Seen<Vec<Interrupt>> {
    let (before, mut after) = (before?, after?);
    for it in &mut after {
        let known = before.iter().find(|other| other.number == it.number);
        let known = known.map_or(&[][..], |other| &other.counts);
        for (count, before) in it.counts.iter_mut().zip(known) {
            *count = count.saturating_sub(*before);
        }
        let allowed = PathBuf::from(format!("/proc/irq/{}/smp_affinity_list", it.number));
        it.allowed = word(&allowed).unwrap_or_else(|_| "?".to_string());
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_devices_have_numbers() {
        let text = "    CPU0   CPU1\n 26:     3     14  IO-APIC  4-edge  ttyS0\n\
                    LOC:     384416     393378   Local timer interrupts\n";
        let [serial] = &devices(text)[..] else { panic!("one device") };
        assert_eq!((serial.number, &*serial.name, &serial.counts[..]), (26, "ttyS0", &[3, 14][..]));
        let before = Ok(devices(&text.replace("3  ", "1  ")));
        assert_eq!(came(before, Ok(devices(text))).unwrap()[0].counts, [2, 0]);
    }
}
