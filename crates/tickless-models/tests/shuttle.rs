//! The models under shuttle, which explores random schedules of sequentially consistent threads:
//! for depth.

#[path = "models/under_shuttle.rs"]
mod checker;
mod models;
