//! Loom models: every interleaving of the lock-free parts, within bounds. Run by `make loom`.
//!
//! Each file models one part with as few threads and steps as can still go wrong. What is not here:
//! parking threads and the kernel, for which flags stand in.

mod bucket;
mod claim;
mod connection_slots;
mod group;
mod ledger;
mod queue;
mod ready_bits;
mod sleep_state;

/// Checks `model` in every interleaving with at most three preemptions: nearly all faults of
/// lock-free code show with two.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}
