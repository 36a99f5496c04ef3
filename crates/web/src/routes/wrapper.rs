//! Wraps endpoints in middleware and header fields.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use gustnado_config::Headers;

use super::entry::{EndpointKind, PathEntry, RouteEndpoint};
use super::error::RouteError;
use super::{Route, RouteOptions, Routes};
use crate::build_context::BuildContext;
use crate::fields::middleware;
use crate::handler::{HandlerFuture, HandlerKind, TaskFn};
use crate::middleware::{Middleware, MiddlewareStack};
use crate::response::Response;
use gustnado_files::{FileOptions, Files, FolderHeaders, FolderResponse, Mounted};

/// Middleware and header fields around each endpoint of a table.
pub(super) struct EndpointWrapper {
    middleware: Vec<Middleware>,
    fields: Headers,
}

impl EndpointWrapper {
    pub(super) fn new(outer: Option<&Routes>, own: &Routes) -> Result<Self, RouteError> {
        let mut wrapper = Self { middleware: own.middleware.clone(), fields: own.fields.clone() };
        if let Some(outer) = outer {
            wrapper.middleware.splice(0..0, outer.middleware.iter().cloned());
            wrapper.fields = outer.fields.with(&own.fields);
        }
        check(&wrapper.fields)?;
        Ok(wrapper)
    }

    pub(super) fn endpoint(
        &self,
        kind: HandlerKind,
        route: &Route,
        build: &BuildContext,
    ) -> RouteEndpoint {
        let is_head_only = matches!(kind, HandlerKind::HeadOnly(_) | HandlerKind::OfServer(_));
        let options = options_of(&kind, route, build);
        // Middleware may read the body.
        let reads_body = !is_head_only || self.has_middleware(route);
        let fields = middleware(&self.fields.with(&route.fields));
        let middleware: Vec<Middleware> =
            fields.iter().chain(&self.middleware).chain(&route.middleware).cloned().collect();
        let runnable = MiddlewareStack::around(&middleware, kind, build);
        let has_timeouts = route.options.has_timeouts();
        let runnable = if has_timeouts { runnable.with_own_time(reads_body) } else { runnable };
        RouteEndpoint { kind: EndpointKind::Run(runnable), options, reads_body }
    }

    /// Returns the endpoint for requests that no path matches.
    pub(super) fn fallback(
        &self,
        route: &Route,
        build: &BuildContext,
    ) -> Result<PathEntry, RouteError> {
        check(&route.fields)?;
        if let Some(folder) = &route.folder {
            return Ok(PathEntry::all(&self.folder(folder, 0, route, build)?));
        }
        Ok(PathEntry::new("", route, |kind| self.endpoint(kind, route, build)))
    }

    /// Returns whether a route's endpoints have middleware.
    fn has_middleware(&self, route: &Route) -> bool {
        !self.middleware.is_empty() || !route.middleware.is_empty()
    }

    /// Refuses a request before middleware sees it. Header fields are added all the same.
    pub(super) fn refusal(&self, kind: HandlerKind, build: &BuildContext) -> RouteEndpoint {
        let middleware: Vec<Middleware> = middleware(&self.fields).into_iter().collect();
        let kind = EndpointKind::Run(MiddlewareStack::around(&middleware, kind, build));
        RouteEndpoint { kind, options: RouteOptions::default(), reads_body: false }
    }

    /// - `mounted_at`: bytes of a request's path that are the route's.
    pub(super) fn folder(
        &self,
        folder: &Path,
        mounted_at: usize,
        route: &Route,
        build: &BuildContext,
    ) -> Result<RouteEndpoint, RouteError> {
        let has_middleware = self.has_middleware(route) || route.options.has_timeouts();
        // Otherwise middleware adds the fields.
        let fields =
            if has_middleware { Headers::default() } else { self.fields.with(&route.fields) };
        let headers = FolderHeaders::new(&fields, &build.common);
        let listing = route.listing.unwrap_or(build.files.listing);
        let options = FileOptions { listing, ..build.files };
        let opened = build.folders.open(folder, options, headers);
        let files = Arc::new(opened.map_err(RouteError::Folder)?);
        if !has_middleware {
            // Without middleware, the connection responds from the folder itself.
            let kind = EndpointKind::Files { files, mounted_at };
            return Ok(RouteEndpoint { kind, options: route.options, reads_body: false });
        }
        Ok(self.endpoint(HandlerKind::Task(handler(files, mounted_at)), route, build))
    }
}

/// Returns a handler that responds from a folder.
///
/// - `mounted_at`: bytes of a request's path that are the route's.
fn handler(files: Arc<Files>, mounted_at: usize) -> Arc<TaskFn> {
    Arc::new(move |request| {
        let place = request.parts().path().ok().map(|path| Mounted { path, at: mounted_at });
        let response =
            files.respond(place.as_ref(), &request.parts().view(), gustnado_tasks::now());
        HandlerFuture::Boxed(match response {
            FolderResponse::Ready(response) => Box::pin(ready(Response::from(*response))),
            FolderResponse::Wait(lookup) => Box::pin(async { lookup.run().await.into() }),
        })
    })
}

/// Returns a route's options, with those of its handler.
#[cfg_attr(not(feature = "tower"), expect(unused_variables, reason = "only services bring some"))]
fn options_of(kind: &HandlerKind, route: &Route, build: &BuildContext) -> RouteOptions {
    match kind {
        #[cfg(feature = "tower")]
        HandlerKind::Service(_, options) => {
            let usual = build.service_body_bytes.unwrap_or(u64::MAX);
            let options = route.options.or(*options);
            RouteOptions { limit_body_bytes: options.limit_body_bytes.or(Some(usual)), ..options }
        }
        _ => route.options,
    }
}

/// Checks whether fields can be sent.
pub(super) fn check(fields: &Headers) -> Result<(), RouteError> {
    fields.check().map_err(|(name, error)| RouteError::Field { name, error })
}
