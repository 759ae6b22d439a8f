//! Chapters of the book in `docs/book`, included here so that their code examples are compiled and
//! run together with those of this documentation.

#[doc = include_str!("../../../docs/book/src/start.md")]
mod start {}
#[doc = include_str!("../../../docs/book/src/which-timer.md")]
mod which_timer {}
#[doc = include_str!("../../../docs/book/src/tokio.md")]
mod tokio {}
#[doc = include_str!("../../../docs/book/src/event-loops.md")]
mod event_loops {}
#[doc = include_str!("../../../docs/book/src/virtual-time.md")]
mod virtual_time {}
#[doc = include_str!("../../../docs/book/src/cancelling.md")]
mod cancelling {}
#[doc = include_str!("../../../docs/book/src/periods.md")]
mod periods {}
#[doc = include_str!("../../../docs/book/src/migrating.md")]
mod migrating {}
