//! Pages about the server, where its settings want some.

use gustnado_config::{Config, Networks};
use gustnado_web::metrics_page::metrics_page;
use gustnado_web::page_guard::PageGuard;
use gustnado_web::routes::{Routes, route};
use gustnado_web::stats_page::stats_page;

/// Adds the pages that the settings name: routes like others, for the clients of
/// `metrics-allow-from`. They respond however many handlers run.
pub(super) fn add_to(mut routes: Routes, config: &Config) -> Routes {
    // The start has already refused malformed networks.
    let guard = PageGuard::new(Networks::of(&config.metrics_allow_from).unwrap_or_default());
    for (path, page) in [(&config.metrics_path, metrics_page()), (&config.stats_path, stats_page())]
    {
        if !path.is_empty() {
            routes = routes.route(path, route().get(guard.guard(page)).exempt(true));
        }
    }
    routes
}
