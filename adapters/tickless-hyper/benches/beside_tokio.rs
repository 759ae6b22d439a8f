//! hyper's server with our timers and with tokio's, in alternating rounds: the lateness of a timer
//! of 250 us, requests per second, and CPU time per request.
//!
//! ```text
//! cargo bench -p tickless-hyper --bench beside_tokio
//! cargo bench -p tickless-hyper --bench beside_tokio -- late    # lateness alone
//! ```
//!
//! Under `cargo test` it runs briefly. Every run asserts that no timer is early and that every
//! request is answered. Server and clients share a process, so a request's CPU time includes both.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::rt::Timer;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tickless_hyper::TicklessTimer;
use tokio::net::{TcpListener, TcpStream};

const SHORT: Duration = Duration::from_micros(250);
const HEADER: Duration = Duration::from_secs(30);
const CLIENTS: usize = 32;

/// The size of a run. `sleeps` and `requests` count for each round.
struct Size {
    rounds: usize,
    sleeps: usize,
    requests: usize,
}

#[derive(Clone, Copy, Default)]
struct Turn {
    late_p50_us: f64,
    late_p99_us: f64,
    requests_per_s: f64,
    cpu_us_per_request: f64,
}

/// Returns the CPU time of this process, which the kernel counts in hundredths of a second.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

async fn serve(listener: TcpListener, timer: impl Timer + Clone + Send + Sync + 'static) {
    while let Ok((socket, _)) = listener.accept().await {
        let connection = http1::Builder::new()
            .timer(timer.clone())
            .header_read_timeout(HEADER)
            .serve_connection(
                TokioIo::new(socket),
                service_fn(|_| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
                }),
            );
        tokio::spawn(connection);
    }
}

async fn ask(server: std::net::SocketAddr, requests: usize) {
    let socket = TcpStream::connect(server).await.expect("it listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.expect("connected");
    tokio::spawn(connection);
    for _ in 0..requests {
        let request = Request::get("/").header("host", "here").body(Empty::<Bytes>::new());
        let answer = sender.send_request(request.expect("well formed")).await.expect("answered");
        assert_eq!(&answer.collect().await.expect("whole").to_bytes()[..], b"hello");
    }
}

async fn turn(timer: impl Timer + Clone + Send + Sync + 'static, size: &Size) -> Turn {
    let mut late = Vec::with_capacity(size.sleeps);
    for _ in 0..size.sleeps {
        let begun = Instant::now();
        timer.sleep(SHORT).await;
        let took = begun.elapsed();
        assert!(took >= SHORT, "early by {:?}", SHORT - took);
        late.push((took - SHORT).as_nanos() as f64 / 1e3);
    }
    late.sort_by(f64::total_cmp);
    let quantile = |q: usize| late[late.len() * q / 100];

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = tokio::spawn(serve(listener, timer));
    let (begun, cpu) = (Instant::now(), cpu_time());
    let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(ask(address, size.requests))).collect();
    for client in clients {
        client.await.expect("every request was answered");
    }
    let all = (CLIENTS * size.requests) as f64;
    let turn = Turn {
        late_p50_us: quantile(50),
        late_p99_us: quantile(99),
        requests_per_s: all / begun.elapsed().as_secs_f64(),
        cpu_us_per_request: (cpu_time() - cpu).as_secs_f64() * 1e6 / all,
    };
    server.abort();
    turn
}

/// Prints the median, the least and the greatest round of each kind of timer, and of their ratios.
fn show(what: &str, turns: &[[Turn; 2]], of: impl Fn(&Turn) -> f64) {
    let spread = |value: &dyn Fn(&[Turn; 2]) -> f64, digits: usize| {
        let mut values: Vec<f64> = turns.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let [low, median, high] = [0, values.len() / 2, values.len() - 1].map(|at| values[at]);
        format!("{median:.digits$} ({low:.digits$} to {high:.digits$})")
    };
    let ours = spread(&|turn| of(&turn[0]), 1);
    let tokios = spread(&|turn| of(&turn[1]), 1);
    let ratio = spread(&|turn| of(&turn[0]) / of(&turn[1]).max(1e-9), 2);
    println!("{what:<25} {ours:>28} {tokios:>28} {ratio:>21}");
}

fn main() {
    let has = |wanted: &str| std::env::args().any(|argument| argument == wanted);
    let size = match (has("--bench"), has("late")) {
        (true, true) => Size { rounds: 25, sleeps: 1_000, requests: 0 },
        (true, false) => Size { rounds: 9, sleeps: 2_000, requests: 3_000 },
        (false, _) => Size { rounds: 1, sleeps: 20, requests: 5 },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let turns = runtime.expect("the system starts threads").block_on(async {
        let ours = TicklessTimer::of_process().expect("the system starts threads");
        let mut turns = Vec::new();
        for round in 0..size.rounds {
            // Rounds alternate which of the two runs first.
            let mut both = [Turn::default(); 2];
            for at in [round % 2, 1 - round % 2] {
                both[at] = match at {
                    0 => turn(ours.clone(), &size).await,
                    _ => turn(TokioTimer::new(), &size).await,
                };
            }
            turns.push(both);
        }
        turns
    });
    println!("{:<25} {:>28} {:>28} {:>21}", "", "ours", "tokio's", "ours / tokio's");
    show("late, p50 of 250 us (us)", &turns, |turn| turn.late_p50_us);
    show("late, p99 of 250 us (us)", &turns, |turn| turn.late_p99_us);
    if size.requests == 0 {
        return;
    }
    show("requests per s", &turns, |turn| turn.requests_per_s);
    show("CPU per request (us)", &turns, |turn| turn.cpu_us_per_request);
}
