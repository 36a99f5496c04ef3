//! Pages about the server, where its settings want some.

use gustnado_config::{Config, Networks};
use gustnado_web::build_context::BuildContext;
use gustnado_web::handler::Handler;
use gustnado_web::metrics_page::metrics_page;
use gustnado_web::page_guard::PageGuard;
use gustnado_web::routes::{Routes, route};
use gustnado_web::stats_page::stats_page;

/// Returns the pages that the settings name, for the clients of `metrics-allow-from`.
pub(super) fn of(config: &Config) -> Vec<(String, Handler)> {
    // The start has already refused malformed networks.
    let guard = PageGuard::new(Networks::of(&config.metrics_allow_from).unwrap_or_default());
    let all = [(&config.metrics_path, metrics_page()), (&config.stats_path, stats_page())];
    all.into_iter()
        .filter(|(path, _)| !path.is_empty())
        .map(|(path, page)| (path.clone(), guard.guard(page)))
        .collect()
}

/// Adds them: routes like others, which respond however many handlers run.
pub(super) fn add_to(routes: Routes, build: &BuildContext) -> Routes {
    build.pages.iter().fold(routes, |routes, (path, page)| {
        routes.route(path, route().get(page.clone()).exempt(true))
    })
}
