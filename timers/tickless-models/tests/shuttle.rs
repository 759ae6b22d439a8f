//! The models under shuttle, which explores random, sequentially consistent schedules: for depth.

#[path = "models/under_shuttle.rs"]
mod checker;
mod models;
