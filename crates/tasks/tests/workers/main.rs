//! Workers, tasks and sockets through the public interface: each test on both backends with each
//! scheduler, where that makes a difference.

mod served;
#[macro_use]
mod setup;

mod blocking;
mod capacity;
mod connections;
mod dumps;
mod ending;
mod groups;
mod growing;
mod lone;
mod mailboxes;
mod selecting;
mod sharing;
mod spawning;
mod tasks;
mod times;
mod wakes;
