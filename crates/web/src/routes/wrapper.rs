//! Wraps endpoints in middleware and header fields.

use std::cell::RefCell;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use gustnado_access::AccessError;
use gustnado_config::{BodyPolicy, CacheRule, Headers, RouteSettings, RouteTuning};
use gustnado_http::fields::{Fields, HeaderId, check_field};
use gustnado_http::method::Method;

use super::access_gate::AccessGate;
use super::elsewhere::SitePaths;
use super::entry::{EndpointKind, GatedEndpoint, PathEntry, RouteEndpoint};
use super::error::RouteError;
use super::prepared::PreparedRoute;
use super::{Route, RouteOptions, Routes};
use crate::build_context::BuildContext;
use crate::compression;
use crate::handler::{Handler, HandlerFuture, HandlerKind, TaskFn};
use crate::middleware::{Middleware, MiddlewareStack};
use crate::preload::{self, link_fields};
use crate::response::Response;
use gustnado_files::{FileOptions, Files, FolderHeaders, FolderResponse, Mounted};

/// Middleware, header fields and gates around each endpoint of a table.
pub(super) struct EndpointWrapper {
    middleware: Vec<Middleware>,
    fields: Headers,
    /// What the site's routes begin with.
    settings: RouteSettings,
    gate: Arc<AccessGate>,
    /// Gates with rates of their own: a route that is at several paths has one rate, and so have
    /// routes that are nested together.
    rated: RefCell<Vec<(RouteTuning, Arc<AccessGate>)>>,
    paths: SitePaths,
}

impl EndpointWrapper {
    /// - `base`: the gate of all sites.
    pub(super) fn new(
        outer: Option<&Routes>,
        own: &Routes,
        base: &Arc<AccessGate>,
        build: &BuildContext,
    ) -> Result<Self, RouteError> {
        let mut tuning = own.tuning.clone();
        if let Some(outer) = outer {
            tuning.within(&outer.tuning);
        }
        let settings = tuning.over(&build.files.settings);
        let gate =
            AccessGate::of(&settings.access, Some(base), build).map_err(RouteError::Access)?;
        let (middleware, fields) = (own.middleware.clone(), own.fields.clone());
        let (rated, paths) = (RefCell::default(), SitePaths::of(own));
        let mut wrapper = Self { middleware, fields, settings, gate, rated, paths };
        if let Some(outer) = outer {
            wrapper.middleware.splice(0..0, outer.middleware.iter().cloned());
            wrapper.fields = outer.fields.with(&own.fields);
        }
        check(&wrapper.fields)?;
        Ok(wrapper)
    }

    /// Returns the gate that all sites begin with.
    pub(super) fn base_gate(
        routes: &Routes,
        build: &BuildContext,
    ) -> Result<Arc<AccessGate>, RouteError> {
        let settings = routes.tuning.over(&build.files.settings);
        AccessGate::of(&settings.access, None, build).map_err(RouteError::Access)
    }

    /// Returns a route with what its settings ask.
    pub(super) fn prepare(
        &self,
        route: Route,
        build: &BuildContext,
    ) -> Result<PreparedRoute, RouteError> {
        let settings = route.tuning.over(&self.settings);
        let gate = self.gate_of(&route.tuning, &settings, build).map_err(RouteError::Access)?;
        PreparedRoute::new(route, settings, &self.fields, &gate)
    }

    /// Returns the gate of a route.
    fn gate_of(
        &self,
        tuning: &RouteTuning,
        settings: &RouteSettings,
        build: &BuildContext,
    ) -> Result<Arc<AccessGate>, AccessError> {
        let mut rated = self.rated.borrow_mut();
        let same = rated.iter().find(|(known, _)| known.is_that_of(tuning));
        if let Some((_, gate)) = same {
            return Ok(Arc::clone(gate));
        }
        let gate = AccessGate::of(&settings.access, Some(&self.gate), build)?;
        if !Arc::ptr_eq(&gate, &self.gate) && !settings.access.rate_limit.is_empty() {
            rated.push((tuning.clone(), Arc::clone(&gate)));
        }
        Ok(gate)
    }

    pub(super) fn endpoint(
        &self,
        kind: HandlerKind,
        prepared: &PreparedRoute,
        build: &BuildContext,
    ) -> RouteEndpoint {
        let route = &prepared.route;
        let kind = kind.on(&build.server_context());
        let is_head_only = matches!(kind, HandlerKind::HeadOnly(_) | HandlerKind::OfServer(_));
        let options = options_of(&kind, route, build);
        let keeps_none = options.body_policy == Some(BodyPolicy::Stream);
        let is_discarded = is_head_only || (keeps_none && matches!(kind, HandlerKind::Inline(_)));
        // Middleware may read the body.
        let reads_body = !is_discarded || self.has_middleware(route);
        // Behind all others: what refuses a request refuses it before its hints are sent.
        let preload = match route.folder {
            Some(_) => Vec::new(),
            None => preload::middleware(&links(route)),
        };
        // Around all others: it sees what they add. A folder does this for its files itself.
        let compression = if route.folder.is_some() {
            None
        } else {
            let counts = build.limits.compression();
            let means = (&build.pool, &build.encoders);
            compression::middleware(&prepared.settings, means, counts, &build.common)
        };
        let outer = compression.iter().chain(&prepared.after);
        let outer = outer.chain(&self.middleware).chain(&route.middleware);
        let middleware: Vec<Middleware> = outer.chain(&preload).cloned().collect();
        let limits = build.limits.of_handler(route.limit, kind.threads(), route.is_exempt);
        let runnable = MiddlewareStack::around(&middleware, kind, limits, build);
        let has_timeouts = route.options.has_timeouts();
        let runnable = if has_timeouts { runnable.with_own_time(reads_body) } else { runnable };
        let kind = EndpointKind::Run(runnable);
        gated(RouteEndpoint { kind, options, reads_body }, prepared)
    }

    /// Returns the endpoint for requests that no path matches.
    pub(super) fn fallback(
        &self,
        prepared: &PreparedRoute,
        build: &BuildContext,
    ) -> Result<PathEntry, RouteError> {
        let route = &prepared.route;
        if let Some(folder) = &route.folder {
            return Ok(self.folder(folder, "", prepared, build)?.entry());
        }
        Ok(PathEntry::new("", route, |_, kind| self.endpoint(kind, prepared, build)))
    }

    /// Returns whether a route's endpoints have middleware.
    fn has_middleware(&self, route: &Route) -> bool {
        !self.middleware.is_empty() || !route.middleware.is_empty()
    }

    /// Refuses a request before middleware sees it. Header fields are added all the same.
    pub(super) fn refusal(
        kind: HandlerKind,
        prepared: &PreparedRoute,
        build: &BuildContext,
    ) -> RouteEndpoint {
        let limits = build.limits.of_handler(None, kind.threads(), true);
        let after = &prepared.after;
        let kind = EndpointKind::Run(MiddlewareStack::around(after, kind, limits, build));
        RouteEndpoint { kind, options: RouteOptions::default(), reads_body: false }
    }

    /// Opens a folder, and returns its endpoints.
    ///
    /// - `base`: the part of a request's path that is the route's, without a slash at its end.
    pub(super) fn folder(
        &self,
        folder: &Path,
        base: &str,
        prepared: &PreparedRoute,
        build: &BuildContext,
    ) -> Result<FolderEndpoints, RouteError> {
        let (route, mounted_at) = (&prepared.route, base.len());
        let has_middleware =
            self.has_middleware(route) || route.options.has_timeouts() || prepared.has_rules;
        // With middleware, that adds the fields.
        let own = if has_middleware { Headers::default() } else { prepared.fields.clone() };
        let headers = FolderHeaders::new(&own, &build.common);
        let headers = headers.with_fields_elsewhere(&prepared.fields).with_links(links(route));
        let headers = headers.with_rules_elsewhere(&prepared.settings.header_rules, base);
        let settings = prepared.settings.clone();
        let upload_bytes_max = settings.upload.then_some(settings.upload_bytes_max);
        check_cache(&settings.cache)?;
        let mut options = FileOptions { settings, ..build.files.clone() };
        options.elsewhere = self.paths.below(base, &options.settings.index);
        let opened = build.folders.open(folder, options, headers);
        let files = Arc::new(opened.map_err(RouteError::Folder)?);
        // A folder runs no handler of the program: it is not counted.
        let exempt = Route { is_exempt: true, limit: None, ..route.clone() };
        let exempt = PreparedRoute { route: exempt, ..prepared.clone() };
        let uploads = build.uploads.zip(upload_bytes_max).map(|(make, bytes_max)| {
            let handler = HandlerKind::Task(make(Arc::clone(&files), mounted_at));
            let route = exempt.route.clone().limit_body_bytes(bytes_max);
            // A body goes to its file, and is kept nowhere else.
            let body_policy = Some(BodyPolicy::Stream);
            let options = RouteOptions { body_policy, ..route.options };
            let route = Route { options, ..route };
            self.endpoint(handler, &PreparedRoute { route, ..exempt.clone() }, build)
        });
        if !has_middleware {
            // Without middleware, the connection responds from the folder itself.
            let kind = EndpointKind::Files { files, mounted_at };
            let usual = RouteEndpoint { kind, options: route.options, reads_body: false };
            return Ok(FolderEndpoints { usual: gated(usual, prepared), uploads });
        }
        let handler = HandlerKind::Task(handler(files, mounted_at));
        Ok(FolderEndpoints { usual: self.endpoint(handler, &exempt, build), uploads })
    }
}

/// The endpoints of a folder.
pub(super) struct FolderEndpoints {
    pub(super) usual: RouteEndpoint,
    /// The endpoint for files that are sent to it, if it takes any.
    pub(super) uploads: Option<RouteEndpoint>,
}

impl FolderEndpoints {
    /// Returns them as those of a path.
    pub(super) fn entry(&self) -> PathEntry {
        PathEntry::all(&self.usual).with_uploads(self.uploads.as_ref())
    }
}

/// Checks that the values of rules can be sent.
fn check_cache(rules: &[CacheRule]) -> Result<(), RouteError> {
    let name = HeaderId::CacheControl.name();
    rules.iter().try_for_each(|rule| {
        let checked = check_field(name, rule.value.as_bytes());
        checked.map_err(|error| RouteError::Field { name: name.to_owned(), error })
    })
}

/// Puts an endpoint behind the gate of its route, if it has one.
fn gated(inner: RouteEndpoint, prepared: &PreparedRoute) -> RouteEndpoint {
    let Some(gate) = &prepared.gate else { return inner };
    let RouteEndpoint { options, reads_body, .. } = inner;
    let task = match &inner.kind {
        EndpointKind::Run(runnable) => runnable.clone().into_task(reads_body),
        EndpointKind::Files { files, mounted_at } => handler(Arc::clone(files), *mounted_at),
        EndpointKind::Gated(_) => return inner,
    };
    let gated = GatedEndpoint::new(gate, inner, task, &prepared.after);
    RouteEndpoint { kind: EndpointKind::Gated(Arc::new(gated)), options, reads_body }
}

/// Returns a handler that responds from a folder.
///
/// - `mounted_at`: bytes of a request's path that are the route's.
fn handler(files: Arc<Files>, mounted_at: usize) -> Arc<TaskFn> {
    Arc::new(move |request| {
        let place = request.parts().path().ok().map(|path| Mounted { path, at: mounted_at });
        let (view, now) = (request.parts().view(), gustnado_tasks::now());
        let is_secure = || request.scheme() == "https";
        let response = files.respond(place.as_ref(), &view, is_secure, now);
        HandlerFuture::Boxed(match response {
            FolderResponse::Ready(response) => Box::pin(ready(Response::from(*response))),
            FolderResponse::Wait(lookup) => {
                request.parts().hint(&files);
                Box::pin(async { lookup.run().await.into() })
            }
        })
    })
}

/// Returns a route's options, with those of its handler.
fn options_of(kind: &HandlerKind, route: &Route, build: &BuildContext) -> RouteOptions {
    let options = match kind {
        #[cfg(feature = "tower")]
        HandlerKind::Service(_, options) => {
            let usual = build.service_body_bytes.unwrap_or(u64::MAX);
            let options = route.options.or(*options);
            RouteOptions { limit_body_bytes: options.limit_body_bytes.or(Some(usual)), ..options }
        }
        _ => route.options,
    };
    let body_policy = options.body_policy.or(Some(build.body_policy));
    RouteOptions { body_policy, ..options }
}

/// Checks that no handler needs a body whole that is not kept for it. Requests without content are
/// handled all the same.
pub(super) fn check_policy<'h>(
    path: &str,
    own: Option<BodyPolicy>,
    handlers: impl IntoIterator<Item = (Option<Method>, &'h Handler)>,
    build: &BuildContext,
) -> Result<(), RouteError> {
    if own.unwrap_or(build.body_policy) != BodyPolicy::Stream {
        return Ok(());
    }
    let has_content = |method: &Option<Method>| {
        !matches!(method, Some(Method::Get | Method::Head | Method::Options | Method::Trace))
    };
    let needs_whole =
        |handler: &Handler| matches!(handler.0, HandlerKind::Inline(_) | HandlerKind::Blocking(_));
    let found =
        handlers.into_iter().find(|(method, handler)| has_content(method) && needs_whole(handler));
    match found {
        Some((method, _)) => Err(RouteError::NeedsWholeBody {
            path: path.to_owned(),
            method: method.and_then(Method::as_str).unwrap_or("other methods"),
        }),
        None => Ok(()),
    }
}

/// Returns the handlers of a route, with their methods.
pub(super) fn handlers_of(route: &Route) -> impl Iterator<Item = (Option<Method>, &Handler)> {
    let by_method = route.handlers.iter().map(|(method, handler)| (Some(*method), handler));
    by_method.chain(route.any.as_ref().map(|handler| (None, handler)))
}

/// Returns the links of a route that was [checked](check_route).
fn links(route: &Route) -> Fields {
    link_fields(&route.preload).unwrap_or_default()
}

/// Checks a route's fields, links, and how it keeps bodies.
pub(super) fn check_route(
    path: &str,
    route: &Route,
    build: &BuildContext,
) -> Result<(), RouteError> {
    check(&route.fields)?;
    if let Err((link, reason)) = link_fields(&route.preload) {
        return Err(RouteError::Preload { path: path.to_owned(), link, reason });
    }
    check_policy(path, route.options.body_policy, handlers_of(route), build)
}

/// Checks whether fields can be sent.
fn check(fields: &Headers) -> Result<(), RouteError> {
    fields.check().map_err(|(name, error)| RouteError::Field { name, error })
}
