//! The lab: loads a server, runs contests of servers, and renders reports.
//!
//! It holds the load generator (`gustnado bench`), contests (`gustnado contest`), plots and
//! reports. Flags, signals and exit codes are the command's.
//!
//! Its three main types: a [`LoadPlan`](plan::LoadPlan) describes one run of the load generator, an
//! [`Outcome`](outcome::Outcome) is its result, and a [`Record`](record::Record) is the result of a
//! contest.
#![forbid(unsafe_code)]

pub mod contest;
pub mod figures;
pub mod load;
pub mod markup;
pub mod notation;
pub mod outcome;
pub mod output;
pub mod plan;
pub mod plot;
pub mod record;
pub mod report;
pub mod statistics;
pub mod steal;
