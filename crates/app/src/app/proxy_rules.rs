//! Which listeners require a PROXY header, and from whom they take one.

use std::sync::Arc;

use gustnado_config::Networks;
use gustnado_tasks::Endpoint;

/// The networks that may send a PROXY header, for each listener; `None` where it needs none.
#[derive(Clone, Debug, Default)]
pub struct ProxyRules {
    /// Of listeners without a rule of their own.
    pub usual: Option<Arc<Networks>>,
    /// Of the others.
    pub own: Vec<(ListenerKey, Option<Arc<Networks>>)>,
}

/// A listener's endpoint as it is configured, and its place among those with the same: several may
/// be on port 0.
pub type ListenerKey = (Endpoint, usize);

impl ProxyRules {
    /// Returns the rule of a listener.
    #[inline]
    pub fn of(&self, listener: &ListenerKey) -> Option<Arc<Networks>> {
        if self.own.is_empty() {
            return self.usual.clone();
        }
        let own = self.own.iter().find(|(key, _)| key == listener);
        own.map_or_else(|| self.usual.clone(), |(_, rule)| rule.clone())
    }
}
