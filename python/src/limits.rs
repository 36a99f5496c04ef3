//! Log lines for requests that a limit has refused.

use gustnado::{Limit, LimitAction, LimitEvent};

use crate::errors::warn;

/// Logs a size limit that was hit, and leaves the rest to the server.
pub(crate) fn tell(event: &LimitEvent<'_>) -> LimitAction {
    let (status, what) = match event.limit {
        Limit::BodyBytes => (413, "bytes of its body"),
        Limit::HeadBytes => (431, "bytes of its head"),
        Limit::TargetBytes => (414, "bytes of its target"),
        Limit::HeaderFields => (431, "fields"),
        _ => return LimitAction::Close,
    };
    let LimitEvent { limit, configured, reached, target, .. } = event;
    let (target, name) = (target.unwrap_or("a request"), limit.name());
    warn(&format!("{target}: refused with {status}: {reached} {what}; --{name} is {configured}"));
    LimitAction::Close
}
