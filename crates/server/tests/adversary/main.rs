//! What attackers send: each module is one way to get through, to get more than a fair share, or to
//! bring the server down. `docs/threat-model.md` names the promise that each test keeps.
//!
//! Times asserted here are at least ten times the goal: the machine may be doing something else.

#[macro_use]
#[path = "../harness/mod.rs"]
mod harness;

mod body_end;
mod body_memory;
mod exhaustion;
mod fairness;
mod grammar;
mod memory_shares;
mod paths;
mod receive_buffers;
mod receive_memory;
mod slow_disk;
mod stopping;
mod time_limits;
