//! Routes of a configuration file.

use std::sync::Arc;

use bytes::Bytes;
use gustnado_config::config_file::{
    ConfigFile, PLAIN, Rewrite, RouteAction, RouteSpec, SiteSpec, Template,
};
use gustnado_config::{CacheRule, FileSetting, HeaderRule, Headers, RouteTuning};
use gustnado_http::method::Method;
use gustnado_http::status::Status;

use crate::Server;
use crate::config::Config;
use gustnado_web::handler::{Handler, HandlerKind};
use gustnado_web::request::Request;
use gustnado_web::response::Response;
use gustnado_web::routes::{Route, Routes, route};

pub(super) fn server(file: &ConfigFile, mut config: Config) -> Server {
    config.routes.header_rules.extend(file.header_rules.iter().cloned());
    let (common, elsewhere) = divided(file);
    let mut routes = Routes { fields: elsewhere.clone(), ..routes(&file.main) };
    for site in &file.sites {
        let mut of_site = self::routes(site);
        of_site.root.clone_from(&site.root);
        of_site.fields.clone_from(&site.headers);
        of_site.tuning = tuning(&site.settings, &site.cache, &site.header_rules);
        routes = routes.hosts(&site.hosts, of_site);
    }
    let mut server = Server::new().config(config).routes(routes).or_built_in();
    for site in &file.sites {
        if let Some(tls) = &site.tls {
            server = server.site_tls(&site.hosts, tls.clone());
        }
    }
    (server.fields, server.overridden) = (common, elsewhere);
    server
}

/// Divides the fields of every response in two. Fields that no site or route overrides are written
/// together with the date, which costs nothing. The routes add the others, and so do refusals.
fn divided(file: &ConfigFile) -> (Headers, Headers) {
    let all_routes = file.sites.iter().chain([&file.main]).flat_map(|site| &site.routes);
    let of_sites = file.sites.iter().map(|site| &site.headers);
    let inner: Vec<&Headers> = of_sites.chain(all_routes.map(|route| &route.headers)).collect();
    let all_routes = file.sites.iter().chain([&file.main]).flat_map(|site| &site.routes);
    let of_routes = all_routes.map(|route| &route.cache);
    let has_rules = of_routes
        .chain(file.sites.iter().map(|site| &site.cache))
        .chain([&file.settings.cache])
        .any(|rules| !rules.is_empty());
    let (mut common, mut elsewhere) = (Headers::default(), Headers::default());
    for (name, value) in file.headers.iter() {
        let is_it = |field: (&str, &str)| field.0.eq_ignore_ascii_case(name);
        let is_ruled = has_rules && name.eq_ignore_ascii_case("Cache-Control");
        let is_overridden = is_ruled || inner.iter().any(|fields| fields.iter().any(is_it));
        let part = if is_overridden { &mut elsewhere } else { &mut common };
        part.set(name, value);
    }
    (common, elsewhere)
}

fn routes(site: &SiteSpec) -> Routes {
    let mut routes = Routes::new();
    for Rewrite { from, to } in &site.rewrites {
        routes = routes.rewrite(from, &to.to_string());
    }
    for spec in &site.routes {
        routes = match &spec.action {
            RouteAction::Folder(folder) => {
                let folder = Some(folder.clone());
                let tuning = tuning(&spec.settings, &spec.cache, &spec.header_rules);
                let fields = spec.headers.clone();
                let preload = spec.preload.clone();
                let files = Route { folder, tuning, fields, preload, ..route() };
                routes.route(&spec.path, files)
            }
            RouteAction::Redirect { .. } | RouteAction::Text { .. } => {
                let tuning = tuning(&spec.settings, &[], &spec.header_rules);
                let preload = spec.preload.clone();
                let leads_to = leads_to(spec);
                let handled = Route { leads_to, tuning, preload, ..handled(spec) };
                routes.route(&spec.path, handled.merge_slashes(spec.merge_slashes))
            }
        };
    }
    site.pages.iter().fold(routes, |routes, spec| {
        routes.static_page(spec.statuses, &spec.file, spec.content.clone())
    })
}

/// Returns what a site or a route changes in its settings. Its rules for caches come before those
/// around it, and its rules of header fields behind them.
fn tuning(settings: &[FileSetting], cache: &[CacheRule], rules: &[HeaderRule]) -> RouteTuning {
    let mut tuning = RouteTuning::default();
    for own in settings {
        let own = own.clone();
        tuning.add(move |settings| own.tune(settings));
    }
    if !cache.is_empty() {
        let cache = cache.to_vec();
        tuning.add(move |settings| drop(settings.cache.splice(0..0, cache.iter().cloned())));
    }
    if !rules.is_empty() {
        let rules = rules.to_vec();
        tuning.add(move |settings| settings.header_rules.extend(rules.iter().cloned()));
    }
    tuning
}

/// Returns the handlers of one route. They add its header fields themselves, since other routes may
/// have the same path and other methods.
fn handled(spec: &RouteSpec) -> Route {
    let fields = spec.headers.clone();
    let handler = match spec.action.clone() {
        RouteAction::Folder(_) => unreachable!("folders have no handlers"),
        RouteAction::Redirect { to, status } => {
            head_only(move |request| with_fields(redirect(&to, request, status), &fields))
        }
        RouteAction::Text { text, status, content_type } => {
            let text = Bytes::from(text);
            head_only(move |_| with_fields(text_response(&text, status, &content_type), &fields))
        }
    };
    let mut route = route();
    for method in &spec.methods {
        route = route.on(*method, handler.clone());
    }
    if spec.methods.is_empty() {
        route = route.any(handler);
    }
    route
}

/// Returns the path that a redirect always leads to.
fn leads_to(spec: &RouteSpec) -> Option<String> {
    let RouteAction::Redirect { to, .. } = &spec.action else { return None };
    let redirects_pages = spec.methods.is_empty() || spec.methods.contains(&Method::Get);
    let path =
        Some(to.to_string()).filter(|to| to.starts_with('/') && !to.contains(['{', '?', '#']));
    path.filter(|_| redirects_pages)
}

/// Returns a handler for several methods that reads no body.
fn head_only(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Handler {
    Handler(HandlerKind::HeadOnly(Arc::new(move |request: &mut Request| handler(request))))
}

fn redirect(to: &Template, request: &Request, status: Status) -> Response {
    let location = to.location(|name| request.raw_param(name), request.raw_query());
    Response::redirect(status, &location)
}

fn text_response(text: &Bytes, status: Status, content_type: &str) -> Response {
    if !status.may_have_body() {
        return Response::new(status);
    }
    let response = Response::text(text.clone()).status(status);
    if content_type == PLAIN { response } else { response.content_type(content_type) }
}

fn with_fields(mut response: Response, fields: &Headers) -> Response {
    for (name, value) in fields.iter() {
        let outcome = response.try_header(name, value);
        debug_assert!(outcome.is_ok(), "{name}: {outcome:?}");
    }
    response
}
