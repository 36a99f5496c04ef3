//! The lab: load on a server, contests of servers, and pages that show what came of them.
//!
//! What lives here: the load generator (`gustnado bench`), contests (`gustnado contest`), plots and
//! reports. What does not: flags, signals and exit codes, which are the command's.
//!
//! Three kinds of data hold it together: a [`LoadPlan`](plan::LoadPlan) is what one run of the load
//! generator is to do, an [`Outcome`](outcome::Outcome) is what it found, and a
//! [`Record`](record::Record) is everything that a contest found.
#![forbid(unsafe_code)]

pub mod contest;
pub mod figures;
pub mod load;
pub mod markup;
pub mod outcome;
pub mod output;
pub mod plan;
pub mod plot;
pub mod record;
pub mod report;
pub mod statistics;
pub mod steal;
