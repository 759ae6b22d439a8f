//! The loop, with epoll and a timerfd.

use rustix::event::epoll;
use std::error::Error;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tickless::Timers;

const IDLE: Duration = Duration::from_millis(60);
const HEARTBEAT: Duration = Duration::from_millis(10);

const PIPE: u64 = 0;
const TIMERS: u64 = 1;

pub fn main() -> Result<(), Box<dyn Error>> {
    let (timers, mut driver) = Timers::builder().start_in_loop()?;
    let (is_idle, beats) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (found_idle, beat) = (Arc::clone(&is_idle), Arc::clone(&beats));
    let idle = timers.hrtimer(move |_| found_idle.store(true, Ordering::Relaxed));
    let heart = timers.periodic(move |_| {
        beat.fetch_add(1, Ordering::Relaxed);
    });
    heart.start(HEARTBEAT)?;
    idle.start(IDLE)?;

    let (mut reader, mut writer) = std::io::pipe()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let readable = epoll::EventFlags::IN;
    epoll::add(&epoll, &reader, epoll::EventData::new_u64(PIPE), readable)?;
    epoll::add(&epoll, &driver, epoll::EventData::new_u64(TIMERS), readable)?;

    let begin = timers.now();
    let (received, fired) = std::thread::scope(|s| {
        let peer = s.spawn(|| {
            for _ in 0..5 {
                writer.write_all(b"hello\n")?;
                // Armed on this thread. The loop is not involved.
                idle.start(IDLE).map_err(std::io::Error::other)?;
                std::thread::sleep(IDLE / 3);
            }
            Ok::<_, std::io::Error>(&writer)
        });
        let (mut received, mut fired, mut events) = (0, 0, Vec::with_capacity(8));
        while !is_idle.load(Ordering::Relaxed) {
            epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    PIPE => received += reader.read(&mut [0; 64])?,
                    _ => fired += driver.run(),
                }
            }
        }
        peer.join().expect("it does not panic")?;
        Ok::<_, Box<dyn Error>>((received, fired))
    })?;

    let (took, device) = (timers.now() - begin, timers.stats().bases[0]);
    let beats = beats.load(Ordering::Relaxed);
    println!("received {received} bytes and {beats} beats in {took:?}");
    println!("{} system calls to program the timerfd", device.device_calls);
    assert_eq!(fired, timers.stats().total().fired);
    assert!(received > 0 && beats > 0);
    assert!(took >= IDLE, "never early");
    assert_eq!(device.sleeps, 0, "only the loop sleeps");
    Ok(())
}
