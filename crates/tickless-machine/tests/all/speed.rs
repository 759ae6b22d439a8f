//! The engine's events per second. Counts are asserted, times are only printed.

use std::rc::Rc;
use std::time::Instant;
use tickless_core::platform::{Lock, Ordering, Word};
use tickless_core::time::{CpuId, Ns};
use tickless_machine::engine::Machine;
use tickless_machine::platform::{SimLock, SimWord};
use tickless_machine::ps::Ps;
use tickless_machine::{cpu, machines};

#[test]
fn events_per_second() {
    let spec = machines::named("ivybridge-ex-16s").unwrap().unwrap();
    let mut machine = Machine::new(spec.costs());
    let shared: Rc<Vec<SimWord>> = Rc::new((0..32).map(|_| SimWord::new(0)).collect());
    let locks: Rc<Vec<SimLock<u64>>> = Rc::new((0..60).map(|_| SimLock::new(0)).collect());
    let rounds = if cfg!(debug_assertions) { 20 } else { 2_000 };
    for cpu in 0..480_u16 {
        let (shared, locks) = (Rc::clone(&shared), Rc::clone(&locks));
        let body = move || {
            let own = SimWord::new(0);
            for round in 0..rounds {
                for _ in 0..3 {
                    own.fetch_add(1);
                }
                shared[usize::from(cpu) % 32].load(Ordering::Relaxed);
                if round % 16 == 0 {
                    shared[usize::from(cpu) % 32].store(round, Ordering::Relaxed);
                }
                *locks[usize::from(cpu) % 60].lock() += 1;
                cpu::work(Ps(300_000 + u64::from(cpu) * 999));
            }
        };
        machine.start(CpuId(cpu), body).unwrap();
    }
    let began = Instant::now();
    machine.run(Ns::NEVER);
    let (events, took) = (machine.events(), began.elapsed());
    assert!(events > 10 * 480 * rounds);
    println!("{events} events in {took:?}: {:.1} M/s", events as f64 / took.as_secs_f64() / 1e6);
}
