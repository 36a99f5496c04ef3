//! Log lines for requests that a limit has refused.

use gustnado::{Limit, LimitAction, LimitEvent};

use crate::errors::warn;

/// Logs a size limit that was hit, and leaves the rest to the server.
///
/// - `usual_max`: what a body may have on routes without a limit of their own.
pub(crate) fn tell(event: &LimitEvent<'_>, usual_max: u64) -> LimitAction {
    let (status, what) = match event.limit {
        Limit::BodyBytes => (413, "bytes of its body"),
        Limit::HeadBytes => (431, "bytes of its head"),
        Limit::TargetBytes => (414, "bytes of its target"),
        Limit::HeaderFields => (431, "fields"),
        _ => return LimitAction::Close,
    };
    let LimitEvent { limit, configured, reached, target, .. } = event;
    let target = target.unwrap_or("a request");
    let name = match limit {
        Limit::BodyBytes if *configured != usual_max => "the limit of its route".to_owned(),
        _ => format!("--{}", limit.name()),
    };
    warn(&format!("{target}: refused with {status}: {reached} {what}; {name} is {configured}"));
    LimitAction::Close
}
