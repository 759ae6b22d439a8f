//! The line: a segment that is replaced while it is read.

use crate::support::{Sometimes, Watched, explore, run_all};
use loom::thread;
use std::sync::Arc;
use tickless_core::clock::line::Line;
use tickless_core::clock::segment::{Segment, SourceId};
use tickless_core::clock::slope::{Point, Slope};
use tickless_core::time::Ns;

fn segment(n: u64) -> Segment {
    let start = Point { ns: Ns(n), fraction: n as u32 };
    let source = SourceId(n as u8);
    Segment { source, count0: n, start, slope: Slope(n), span: n + 1 }
}

#[test]
fn a_segment_is_read_whole() {
    let seen = [(); 3].map(|()| Sometimes::default());
    let see = seen.clone();
    explore(3, move || {
        let line = Arc::new(Line::<Watched>::new(segment(0)));
        let (writing, reading, see) = (Arc::clone(&line), Arc::clone(&line), see.clone());
        let write = Box::new(move || {
            for n in 1..=2 {
                assert!(writing.redraw(segment(n)));
            }
        });
        let read = Box::new(move || {
            if let Some(read) = reading.try_segment() {
                assert_eq!(read, segment(read.count0));
                see[read.count0 as usize].saw(true);
            }
        });
        run_all(vec![write, read]);
        assert_eq!(line.try_segment(), Some(segment(2)));
    });
    assert!(seen.iter().all(Sometimes::happened), "some schedules were not explored");
}

#[test]
fn concurrent_writers_are_refused() {
    explore(3, || {
        let line = Arc::new(Line::<Watched>::new(segment(0)));
        let write = |n| {
            let line = Arc::clone(&line);
            thread::spawn(move || line.redraw(segment(n)))
        };
        let writers = [write(1), write(2)].map(|writer| writer.join().unwrap());
        let drawn = line.try_segment().unwrap();
        assert!(drawn == segment(1) && writers[0] || drawn == segment(2) && writers[1]);
    });
}
