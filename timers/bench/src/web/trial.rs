//! One run of a server under load.

use super::guards::{IDLE, Scene, Time, push_outs};
use super::load::{Clients, Seen};
use super::server::Server;
use crate::affinity;
use crate::latency::wakeups;
use crate::sample::process_time;
use std::net::{Ipv4Addr, TcpStream};
use std::pin::Pin;
use std::sync::Barrier;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// The number of requests in flight.
const IN_FLIGHT: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub scene: Scene,
    pub connections: usize,
    pub simulated: usize,
    pub run: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub requests_per_s: f64,
    /// CPU time of all threads but the clients': workers, drivers, kernel work included.
    pub cpu_us: f64,
    /// Sleeps of the same threads for each request.
    pub wakeups: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// The time of a push-out, if it was timed: wall time, two reads of the clock included.
    pub push_out_ns: f64,
}

pub fn try_out<T: Time>(trial: &Trial) -> Outcome {
    let server = Server::start::<T>(trial.scene).expect("a server starts");
    let simulated = simulate::<T>(trial, &server);
    let threads = (affinity::remember() / 2).clamp(1, 2);
    let [connections, outstanding] =
        [trial.connections, IN_FLIGHT].map(|count| count.div_ceil(threads));
    let (begin, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let (seen, cpu, wakeups, push_out_ns) = std::thread::scope(|s| {
        let clients = |nth| {
            let (server, begin, end) = (&server, &begin, &end);
            s.spawn(move || {
                affinity::keep_to_half(affinity::Half::Second);
                let clients = Clients::connect(server.port, connections, nth as u64);
                let mut clients = clients.expect("the server listens");
                clients.work(outstanding, trial.run, begin, end).expect("the server answers")
            })
        };
        let clients: Vec<_> = (0..threads).map(clients).collect();
        begin.wait();
        let (before, cpu, push_outs_before) = (wakeups(), process_time(), push_outs());
        end.wait();
        let (cpu, wakeups) = (process_time().saturating_sub(cpu), wakeups() - before);
        let (count, ns) = push_outs();
        // NaN if none was timed.
        let push_out_ns = (ns - push_outs_before.1) as f64 / (count - push_outs_before.0) as f64;
        let joined =
            clients.into_iter().map(|client| client.join().expect("all answers are right"));
        (joined.collect::<Vec<Seen>>(), cpu, wakeups, push_out_ns)
    });
    let entered = server.runtime().enter();
    drop(simulated);
    drop(entered);
    outcome(seen, cpu, wakeups, push_out_ns)
}

/// Returns the context switches a second of a server with idle connections, whose one task ticks
/// every 100 ms. Counts the threads of the whole process; the caller's one sleep included.
pub fn switches_when_idle<T: Time>(trial: &Trial) -> f64 {
    let server = Server::start::<T>(trial.scene).expect("a server starts");
    server.runtime().spawn(async {
        loop {
            let mut tick = Box::pin(T::sleep(Duration::from_millis(100)));
            tick.as_mut().await;
        }
    });
    let connect = |_| TcpStream::connect((Ipv4Addr::LOCALHOST, server.port));
    let connections: Vec<_> = (0..trial.connections).map(connect).collect();
    assert!(connections.iter().all(Result::is_ok), "the server listens");
    std::thread::sleep(trial.run / 4);
    let (begun, before) = (Instant::now(), wakeups());
    std::thread::sleep(trial.run);
    (wakeups() - before) as f64 / begun.elapsed().as_secs_f64()
}

/// Returns how late a server's only task wakes from sleeps of 250 us: median and p99, in us.
pub fn lateness_when_idle<T: Time>(trial: &Trial) -> [f64; 2] {
    let server = Server::start::<T>(trial.scene).expect("a server starts");
    let (after, run) = (Duration::from_micros(250), trial.run);
    let sleeps = server.runtime().spawn(async move {
        let (begun, mut late_us) = (Instant::now(), Vec::new());
        while late_us.is_empty() || begun.elapsed() < run {
            let due = Instant::now() + after;
            T::sleep(after).await;
            late_us.push(due.elapsed().as_secs_f64() * 1e6);
        }
        late_us
    });
    let mut late_us = server.runtime().block_on(sleeps).expect("no panic");
    late_us.sort_by(f64::total_cmp);
    [0.5, 0.99].map(|part| late_us[((late_us.len() - 1) as f64 * part) as usize])
}

fn outcome(seen: Vec<Seen>, cpu: Duration, wakeups: u64, push_out_ns: f64) -> Outcome {
    let clients: Duration = seen.iter().map(|seen| seen.cpu).sum();
    let of_clients: u64 = seen.iter().map(|seen| seen.wakeups).sum();
    let wall = seen.iter().map(|seen| seen.wall).max().unwrap_or_default();
    let mut latencies: Vec<u32> = seen.into_iter().flat_map(|seen| seen.latencies_ns).collect();
    latencies.sort_unstable();
    let requests = latencies.len() as f64;
    assert!(requests > 0.0, "nothing was answered");
    let at = |part: f64| f64::from(latencies[((requests - 1.0) * part) as usize]) / 1e3;
    Outcome {
        requests_per_s: requests / wall.as_secs_f64(),
        cpu_us: cpu.saturating_sub(clients).as_secs_f64() * 1e6 / requests,
        wakeups: wakeups.saturating_sub(of_clients) as f64 / requests,
        p50_us: at(0.5),
        p99_us: at(0.99),
        push_out_ns,
    }
}

/// Idle timeouts as in a server that runs for a while: pushed out, all over the wheel.
fn simulate<T: Time>(trial: &Trial, server: &Server) -> Vec<Pin<Box<T::Sleep>>> {
    let count = trial.simulated;
    let _in = server.runtime().enter();
    let cx = &mut Context::from_waker(Waker::noop());
    let each = |nth: usize| {
        let spread = IDLE.mul_f64((nth + 1) as f64 / count as f64);
        let mut idle = Box::pin(T::sleep(Duration::from_millis(500) + spread));
        assert!(idle.as_mut().poll(cx).is_pending());
        trial.scene.push_out::<T>(idle.as_mut());
        idle
    };
    (0..count).map(each).collect()
}
