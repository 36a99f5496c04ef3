//! Pages about the server, where its settings want some.

use std::path::Path;
use std::sync::Arc;

use gustnado_config::{Config, Networks, StatusRange, error_page_content, error_page_of};
use gustnado_web::build_context::BuildContext;
use gustnado_web::error_page::{ErrorPage, static_page};
use gustnado_web::handler::Handler;
use gustnado_web::metrics_page::metrics_page;
use gustnado_web::page_guard::PageGuard;
use gustnado_web::routes::{Routes, route};
use gustnado_web::stats_page::stats_page;

use super::start_error::StartError;

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

/// Returns the pages for errors that the settings name.
///
/// # Errors
/// The file of one cannot be read.
pub(super) fn of_errors(config: &Config) -> Result<Arc<[(StatusRange, ErrorPage)]>, StartError> {
    let page = |text: &String| -> Result<(StatusRange, ErrorPage), StartError> {
        let failed = |reason| StartError::ErrorPage { text: text.clone(), reason };
        let (statuses, file) = error_page_of(text).ok_or_else(|| {
            failed("expected a status with a file, such as 404=404.html or 5xx=50x.html".to_owned())
        })?;
        let file = Path::new(file);
        let content = error_page_content(file).map_err(failed)?;
        Ok((statuses, static_page(file, content)))
    };
    config.error_page_files.iter().map(page).collect()
}

/// Adds them: routes like others, which respond however many handlers run.
pub(super) fn add_to(routes: Routes, build: &BuildContext) -> Routes {
    build.pages.iter().fold(routes, |routes, (path, page)| {
        routes.route(path, route().get(page.clone()).exempt(true))
    })
}
