//! Two lights that blink at different rates, on embassy's timers and Tickless' driver for std.

use embassy_time::{Duration, Instant, Ticker};
use std::pin::pin;
use std::task::Poll;
use tickless_embassy as _;

async fn blink(name: &str, every: Duration, times: u32) {
    let (begin, mut ticker) = (Instant::now(), Ticker::every(every));
    for nth in 1..=times {
        ticker.next().await;
        let state = if nth % 2 == 1 { "on" } else { "off" };
        println!("{name} {state} at {} ms", begin.elapsed().as_millis());
    }
}

fn main() {
    pollster::block_on(async {
        let mut red = pin!(blink("red", Duration::from_millis(30), 6));
        let mut green = pin!(blink("green", Duration::from_millis(50), 4));
        let (mut red_is_out, mut green_is_out) = (false, false);
        std::future::poll_fn(|cx| {
            red_is_out = red_is_out || red.as_mut().poll(cx).is_ready();
            green_is_out = green_is_out || green.as_mut().poll(cx).is_ready();
            if red_is_out && green_is_out { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
}
