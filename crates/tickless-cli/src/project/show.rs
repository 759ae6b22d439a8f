//! Prints projections (runs of a recorded trace on simulated machines) as tables, JSON or CSV.

use crate::output::{Results, bare, paragraph, write_csv, write_table};
use std::io::{self, Write};
use tickless_fleet::project::{Projected, Projection, Shares};
use tickless_fleet::row::Figure;
use tickless_lab::text::time;

impl Results for Projected {
    fn tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let Projected { trace, trace_cpus, machine, points, .. } = self;
        let clock = points.first().map_or("", |point| point.clock);
        writeln!(out, "{trace} ({trace_cpus} CPUs) on {machine}, clock {clock}")?;
        writeln!(out, "\nOf each CPU's second:")?;
        let header = ["CPUs", "policy", "writes", "wakeups", "for nothing", "late p50", "p99"];
        let mut table = bare(&header, 2);
        for point in points {
            let each = |count: u64| {
                format!("{:.1}", count as f64 / f64::from(point.cpus) / point.seconds.max(1e-9))
            };
            table.add_row([
                point.cpus.to_string(),
                point.policy.to_string(),
                each(point.device_writes),
                each(point.wakeups),
                each(point.spurious_wakeups),
                time(point.lateness_ns.p50),
                time(point.lateness_ns.p99),
            ]);
        }
        write_table(&table, out)?;
        writeln!(out, "\nPercent of the CPUs' time:")?;
        let header =
            ["CPUs", "policy", "timer code", "clock", "locks", "cancels", "device", "irqs"];
        let mut table = bare(&header, 2);
        for point in points {
            let Shares { timer_code, clock_read, lock_wait, cancel_wait, .. } = point.percent;
            let of_hardware = [point.percent.device, point.percent.interrupts];
            let shares = [timer_code, clock_read, lock_wait, cancel_wait].into_iter();
            let shares = shares.chain(of_hardware).map(|share| format!("{share:.3}"));
            table.add_row([point.cpus.to_string(), point.policy.into()].into_iter().chain(shares));
        }
        write_table(&table, out)?;
        paragraph(out, "", NOTES)?;
        writeln!(out)?;
        for Projection { cpus, policy, device_writes, recorded_writes, .. } in points {
            if let Some(recorded) = recorded_writes {
                let off = 100.0 * (*device_writes as f64 / (*recorded).max(1) as f64 - 1.0);
                let text = format!(
                    "{policy}, {cpus} CPUs: {device_writes} device writes, {recorded} recorded, \
                     {off:+.1} %"
                );
                paragraph(out, "  - ", &text)?;
            }
        }
        self.limits.iter().try_for_each(|limit| paragraph(out, "  - ", limit))
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = "cpus,policy,clock,figure,unit,role,value";
        let of_point = |point: &Projection| {
            let of_all = (point.cpus, point.policy, point.clock);
            // Format numbers in Rust's way, which writes whole numbers without a decimal point.
            let row = move |it: Figure| {
                let value = it.value.map(|value| value.to_string());
                (of_all, it.figure, it.unit, it.role, value)
            };
            point.figures().into_iter().map(row)
        };
        write_csv(header, self.points.iter().flat_map(of_point), out)
    }
}

const NOTES: &str = "\"timer code\" contains the others. \"locks\" is waiting for another CPU's \
    use of a base, \"cancels\" for callbacks that run on another CPU: a trace does not tell which \
    cancels wait, so all are taken to.";
