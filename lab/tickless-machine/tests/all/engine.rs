//! The engine: order, determinism, prices, parking, interrupts.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use tickless_core::platform::{Lock, Ordering, Platform, Word};
use tickless_core::time::{CpuId, Ns};
use tickless_machine::engine::{Ended, Machine};
use tickless_machine::irq::{self, Vector};
use tickless_machine::platform::{Sim, SimLock, SimWord};
use tickless_machine::ps::Ps;
use tickless_machine::spec::Spec;
use tickless_machine::{cpu, device, machines};

fn spec(name: &str) -> Spec {
    machines::named(name).unwrap().unwrap()
}

fn machine(name: &str) -> Machine {
    Machine::new(spec(name).costs())
}

const FOREVER: Ns = Ns::NEVER;

/// Starts a program. Returns where its result will be.
fn start<T: 'static>(
    machine: &mut Machine,
    cpu: u16,
    body: impl FnOnce() -> T + 'static,
) -> Rc<OnceCell<T>> {
    let result = Rc::new(OnceCell::new());
    let kept = Rc::clone(&result);
    machine.start(CpuId(cpu), move || _ = kept.set(body())).unwrap();
    result
}

/// Goal: a ping-pong over one line costs a transfer each way, and the waiting side is parked.
#[test]
fn ping_pong_costs_two_transfers() {
    let spec = spec("x5675-2s");
    for (other, hop) in [(1, "line.node_ns"), (6, "line.near_ns")] {
        let mut machine = Machine::new(spec.costs());
        let ball = Rc::new(SimWord::new(0));
        let rounds = 1_000;
        for (cpu, mine) in [(0, 0), (other, 1)] {
            let ball = Rc::clone(&ball);
            start(&mut machine, cpu, move || {
                for _ in 0..rounds {
                    let mut turn = 0;
                    while ball.load(Ordering::Acquire) % 2 != mine {
                        Sim.relax(turn);
                        turn += 1;
                    }
                    ball.store(ball.load(Ordering::Relaxed) + 1, Ordering::Release);
                }
            });
        }
        assert_eq!(machine.run(FOREVER), Ended::Quiet);
        let took = machine.clock(CpuId(other)).unwrap().as_ns_f64() / rounds as f64;
        let transfer = spec.value(hop);
        // Each way: the reader fetches the line, the writer claims it and is not waited for.
        assert!((2.0 * transfer..5.0 * transfer).contains(&took), "{took} ns, hop {transfer}");
        assert!(machine.events() < 12 * rounds, "{} events", machine.events());
    }
}

/// A waiting loop reads two words of one line, and a write comes between the two reads.
#[test]
fn write_between_two_reads_of_a_round_ends_the_wait() {
    let mut machine = machine("x5675-2s");
    let words = Rc::new([SimWord::new(0), SimWord::new(0)]);
    let theirs = Rc::clone(&words);
    start(&mut machine, 0, move || {
        cpu::wait_until(Ps::from_ns(Ns(10_000)));
        theirs[0].store(1, Ordering::Release);
    });
    let ended = start(&mut machine, 1, move || {
        let mut round = 0;
        while words[0].load(Ordering::Acquire) == 0 {
            if round == 0 {
                cpu::wait_until(Ps::from_ns(Ns(20_000)));
            }
            words[1].load(Ordering::Acquire);
            Sim.relax(round);
            round += 1;
        }
    });
    assert_eq!(machine.run(FOREVER), Ended::Quiet);
    assert!(ended.get().is_some(), "the write was not noticed");
}

/// Goal: a CPU requests a line while it waits for another one, unless it needs the other's content,
/// has much to compute in between, or has waited in a loop. Requests of stores are as far apart.
#[test]
fn misses_overlap_if_neither_needs_the_other() {
    const LINE: f64 = 100.0;
    const OVERLAP: f64 = 10.0;
    let spec = ["line.node_ns", "line.near_ns", "line.far_ns", "line.memory_ns"]
        .into_iter()
        .fold(spec("host"), |spec, key| spec.with(key, LINE))
        .with("line.load_share", 1.0)
        .with("line.store_share", 1.0)
        .with("line.overlap_ns", OVERLAP);
    let window = Ps::from_ns_f64(spec.value("cpu.window_ns"));
    // The gap puts each word on a line of its own.
    type Words = [(SimWord, [u64; 2]); 2];
    let takes = |access: Box<dyn Fn(&Words)>| {
        let mut machine = Machine::new(spec.costs());
        let words: Rc<Words> = Rc::new([(); 2].map(|()| (SimWord::new(0), [0; 2])));
        let theirs = Rc::clone(&words);
        start(&mut machine, 1, move || {
            cpu::wait_until(Ps::from_ns(Ns(10_000)));
            theirs[0].0.store(1, Ordering::Release);
        });
        let took = start(&mut machine, 0, move || {
            access(&words);
            cpu::clock().as_ns_f64()
        });
        machine.run(FOREVER);
        *took.get().unwrap()
    };
    let load = |word: &(SimWord, [u64; 2])| word.0.load(Ordering::Acquire);
    let between = |step: fn(Ps)| {
        takes(Box::new(move |words| {
            load(&words[0]);
            step(window);
            load(&words[1]);
        }))
    };
    assert_eq!(between(|_| {}), LINE + OVERLAP);
    assert_eq!(between(|_| cpu::depend()), 2.0 * LINE);
    let late = between(|window| cpu::work(Ps(window.0 + 1)));
    assert!(late >= 2.0 * LINE + window.as_ns_f64(), "{late}");
    let after_a_loop = takes(Box::new(move |words| {
        while load(&words[0]) == 0 {
            Sim.relax(0);
        }
        let begun = cpu::clock();
        load(&words[1]);
        assert_eq!((cpu::clock() - begun).as_ns_f64(), LINE);
    }));
    assert!(after_a_loop > 10_000.0);
    let stores = takes(Box::new(|words| {
        words.iter().for_each(|word| word.0.store(1, Ordering::Release));
        words[1].0.fetch_add(1);
    }));
    let add = spec.value("line.hit_ns") + spec.value("line.atomic_ns");
    assert_eq!(stores, LINE + OVERLAP + add);
}

#[test]
fn atomic_operation_locks_its_line() {
    for atomic_ns in [0.0, 500.0] {
        let spec = spec("x5675-2s").with("line.atomic_ns", atomic_ns);
        let mut machine = Machine::new(spec.costs());
        let word = Rc::new(SimWord::new(0));
        let first = Rc::clone(&word);
        start(&mut machine, 0, move || _ = first.fetch_add(1));
        let got = start(&mut machine, 1, move || {
            cpu::work(Ps::from_ns(Ns(10)));
            assert_eq!(word.load(Ordering::Acquire), 1);
            cpu::clock().as_ns_f64()
        });
        machine.run(FOREVER);
        let load = spec.value("line.load_share") * spec.value("line.node_ns");
        let transfers = spec.value("line.memory_ns") + load;
        assert_eq!(got.get(), Some(&(transfers + atomic_ns)));
    }
}

/// Goal: a core may use a line until the next request for it arrives: an atomic operation that
/// waits for the stores before it fetches the line again if the request has arrived by then.
#[test]
fn lease_may_end_inside_an_atomic_operation() {
    let spec = spec("x5675-2s");
    let ns = |key| spec.value(key);
    let of_hit = ns("line.hit_ns") + ns("line.atomic_ns");
    let of_transfer = ns("line.node_ns") + ns("line.atomic_ns");
    // The store is visible when its line has come from memory, after the lease and the other core.
    let of_store = ns("line.memory_ns") - ns("line.store_ns");
    assert!(ns("line.memory_ns") > 1.0 + of_transfer);
    for (stores, wanted) in [(0, of_hit), (1, of_store + of_transfer)] {
        let mut machine = Machine::new(spec.costs());
        let [word, other] = [0, 0].map(|value| Rc::new(SimWord::new(value)));
        let theirs = Rc::clone(&word);
        start(&mut machine, 1, move || {
            cpu::wait_until(Ps::from_ns(Ns(999)));
            theirs.fetch_add(1);
        });
        let took = start(&mut machine, 0, move || {
            word.fetch_add(1);
            cpu::wait_until(Ps::from_ns(Ns(1_000)));
            for _ in 0..stores {
                other.store(1, Ordering::Relaxed);
            }
            let began = cpu::clock();
            assert_eq!(word.fetch_add(1), 2);
            cpu::clock() - began
        });
        assert_eq!(machine.run(FOREVER), Ended::Quiet);
        assert_eq!(took.get(), Some(&Ps::from_ns_f64(wanted)), "after {stores} stores");
    }
}

/// Goal: a CPU that is switched off loses its event device's setting and the interrupts that
/// arrive, does nothing until it is on again, and then works as before.
#[test]
fn power_off_loses_interrupts_and_the_device_setting() {
    let mut machine = machine("itanium2-4p");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    machine.on_interrupt(move |vector| log.borrow_mut().push((vector, cpu::clock())));
    let us = |us: u64| Ps::from_ns(Ns(1_000 * us));
    start(&mut machine, 0, move || {
        let masked = irq::mask();
        device::program(Ns(20_000));
        cpu::power_off(us(50));
        assert_eq!(cpu::clock(), us(50));
        drop(masked);
        cpu::work(us(10));
        device::program(Ns(80_000));
        cpu::work(us(30));
    });
    start(&mut machine, 1, move || {
        cpu::work(us(30));
        irq::send(CpuId(0), Vector::Look);
    });
    assert_eq!(machine.run(FOREVER), Ended::Quiet);
    let seen = seen.borrow();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].0 == Vector::Timer && seen[0].1 >= us(80), "{seen:?}");
}

/// Goal: an interrupt is delivered in the middle of a computation, which takes that much longer; a
/// masked interrupt waits; an interrupt ends a halt.
#[test]
fn interrupts_are_delivered_when_unmasked() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let mut machine = machine("haswell-ex-4s");
    let seen = Rc::clone(&log);
    machine.on_interrupt(move |vector| {
        seen.borrow_mut().push((vector, cpu::clock().to_ns().0));
        cpu::charge(Ps::from_ns(Ns(1_000)));
    });
    let costs = machine.costs().unwrap().irq;
    let ended = Rc::clone(&log);
    start(&mut machine, 0, move || {
        device::program(Ns(10_000));
        let before = cpu::clock();
        cpu::work(Ps::from_ns(Ns(20_000)));
        let took = cpu::clock() - before;
        let handler = costs.entry + costs.exit + Ps::from_ns(Ns(1_000));
        assert_eq!(took, Ps::from_ns(Ns(20_000)) + handler);
        let masked = irq::mask();
        device::program(cpu::clock().to_ns().after(Ns(100)));
        cpu::work(Ps::from_ns(Ns(5_000)));
        assert_eq!(ended.borrow().len(), 1, "masked");
        drop(masked);
        assert_eq!(ended.borrow().len(), 2);
        let masked = irq::mask();
        device::program(cpu::clock().to_ns().after(Ns(50_000)));
        let before = cpu::clock();
        cpu::halt();
        assert!(cpu::clock() - before >= Ps::from_ns(Ns(49_000)));
        assert_eq!(ended.borrow().len(), 2, "still masked");
        drop(masked);
        assert_eq!(ended.borrow().len(), 3);
        irq::send(CpuId(1), Vector::Reschedule);
    });
    start(&mut machine, 1, || cpu::work(Ps::from_ns(Ns::from_ms(1))));
    machine.run(FOREVER);
    let vectors: Vec<Vector> = log.borrow().iter().map(|entry| entry.0).collect();
    assert_eq!(vectors, [Vector::Timer, Vector::Timer, Vector::Timer, Vector::Reschedule]);
    assert_eq!(log.borrow()[0].1, 10_000 + costs.entry.to_ns().0);
}

/// Goal: the run propagates a panic of a fiber, other fibers release their locks, and the next
/// machine on the thread works.
#[test]
fn panics_are_propagated() {
    let lock = Rc::new(SimLock::new(0));
    let mut broken = machine("itanium2-4p");
    let held = Rc::clone(&lock);
    start(&mut broken, 0, move || {
        let _guard = held.lock();
        cpu::wait_until(Ps(10_000_000));
    });
    start(&mut broken, 1, || {
        cpu::wait_until(Ps(5_000_000));
        panic!("on purpose");
    });
    let run = std::panic::AssertUnwindSafe(|| broken.run(FOREVER));
    assert!(std::panic::catch_unwind(run).is_err());
    let mut next = machine("itanium2-4p");
    let free = Rc::clone(&lock);
    start(&mut next, 0, move || *free.lock() += 1);
    assert_eq!(next.run(FOREVER), Ended::Quiet);
    assert_eq!(*lock.lock(), 1);
}

#[test]
fn fields_of_a_structure_share_a_line() {
    #[repr(align(128))]
    struct Fields([SimWord; 4]);
    let mut machine = machine("haswell-ex-4s");
    let fields = Rc::new(Fields([1, 2, 3, 4].map(SimWord::new)));
    start(&mut machine, 0, move || {
        let price = |word: &SimWord| {
            let began = cpu::clock();
            word.load(Ordering::Relaxed);
            cpu::clock() - began
        };
        let prices: Vec<Ps> = fields.0.iter().map(price).collect();
        assert!(prices[0] > Ps(10 * prices[1].0), "{prices:?}");
        assert!(prices[1] == prices[2] && prices[2] == prices[3], "{prices:?}");
    });
    machine.run(FOREVER);
}

#[test]
fn run_ends_at_the_end_of_the_range() {
    let mut machine = machine("ivybridge-ex-16s");
    let body = || cpu::work(Ps::from_ns(Ns::from_secs(11 * 3600)));
    start(&mut machine, 0, body);
    start(&mut machine, 479, body);
    assert_eq!(machine.run(Ns::from_secs(3600)), Ended::Until);
    assert_eq!(machine.run(FOREVER), Ended::OutOfRange);
}
