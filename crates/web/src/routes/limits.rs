//! How many handlers of a route run at a time.

use super::Route;
use crate::handler_limits::OwnLimit;

impl Route {
    /// Lets so many handlers of this path run at a time, all its methods together; 0 is no limit,
    /// as by default. `limit-concurrency` and the number of threads hold for them as well.
    ///
    /// Further requests wait: `handler-queue` of them for this path, each for
    /// `handler-queue-timeout` at most. When that is full, the one that has waited for longest gets
    /// 503 with `Retry-After`. A path that cannot keep up so keeps no handler from others.
    ///
    /// It counts tasks, blocking handlers and services. Inline handlers and folders do not wait,
    /// and have no limit.
    #[must_use]
    pub fn limit_concurrency(mut self, handlers_max: usize) -> Self {
        self.limit = OwnLimit::new(handlers_max);
        self
    }

    /// Exempts the handlers of this path from `limit-concurrency` and from the queue for threads:
    /// they run at once, however many others wait. A blocking one gets the next thread that is
    /// free. For what must respond under load: health checks, a page for operators.
    ///
    /// [`Route::limit_concurrency`] still holds.
    #[must_use]
    pub fn exempt(mut self, is_exempt: bool) -> Self {
        self.is_exempt = is_exempt;
        self
    }
}
