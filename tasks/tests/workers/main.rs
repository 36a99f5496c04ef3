//! Workers, tasks and sockets through the public interface: each test on both backends with each
//! scheduler, where that makes a difference.

#[macro_use]
mod setup;

mod blocking;
mod capacity;
mod connections;
mod ending;
mod sharing;
mod tasks;
mod times;
mod wakes;
