//! Recorded runs for trace viewers.

use tickless_core::time::{CpuId, Ns};
use tickless_machine::engine::{self, Machine};
use tickless_machine::ps::Ps;
use tickless_machine::{cpu, device, machines, trace};

/// Goal: a recorded run is JSON in Chrome's format: every begin has its end, times on a CPU do not
/// decrease, and each interrupt is recorded.
#[test]
fn recorded_run_is_chrome_json() {
    let mut machine = Machine::new(machines::named("itanium2-4p").unwrap().unwrap().costs());
    machine.record();
    machine.on_interrupt(|_| engine::charge(Ps::from_ns(Ns(500))));
    for cpu in 0..4 {
        let body = move || {
            trace::begin("work");
            device::program(Ns(10_000 + u64::from(cpu)));
            cpu::work(Ps::from_ns(Ns(30_000)));
            trace::instant("half");
            cpu::work(Ps::from_ns(Ns(1_000)));
            trace::end();
            trace::end();
        };
        machine.start(CpuId(cpu), body).unwrap();
    }
    machine.run(Ns::NEVER);
    let recorded = machine.trace().unwrap();
    let json: serde_json::Value = serde_json::from_str(&recorded.to_chrome_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    for cpu in 0..4 {
        let is_mine = |event: &&serde_json::Value| event["tid"] == cpu;
        let (named, mine): (Vec<_>, Vec<_>) =
            events.iter().filter(is_mine).partition(|event| event["ph"] == "M");
        assert_eq!(named[0]["args"]["name"], format!("CPU {cpu}"));
        let phases: Vec<&str> = mine.iter().map(|event| event["ph"].as_str().unwrap()).collect();
        assert_eq!(phases, ["B", "i", "B", "E", "i", "E"], "an end without a begin is left out");
        assert_eq!(mine[1]["name"], "device write");
        assert_eq!(mine[2]["name"], "timer interrupt");
        let times: Vec<f64> = mine.iter().map(|event| event["ts"].as_f64().unwrap()).collect();
        assert!(times.is_sorted() && times[5] > 31.0, "{times:?}");
    }
}
