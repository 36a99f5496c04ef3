//! Listeners of a server.

use std::io;
use std::sync::Arc;

use gustnado_tasks::{BoxTask, Endpoint, ListenerHandle, Workers};

use super::StartError;
use crate::config::Config;
use gustnado_app::app::AppHandle;
use gustnado_h1 as conn;
use gustnado_tcp::first_address;

/// The open listeners of a server.
#[derive(Default)]
pub(super) struct Listeners(Vec<OpenListener>);

struct OpenListener {
    /// The endpoint as configured: port 0 is not yet resolved.
    configured: Endpoint,
    listening: ListenerHandle,
}

impl Listeners {
    /// Begins to listen.
    pub(super) fn open(
        &mut self,
        workers: &Workers,
        endpoint: Endpoint,
        current: &Arc<AppHandle>,
    ) -> Result<(), StartError> {
        let current = Arc::clone(current);
        let serve = Box::new(move |connection| {
            let app = current.app();
            let task: BoxTask = Box::pin(conn::serve(connection, app));
            task
        });
        let failed = |error| StartError::from_bind(endpoint.clone(), error);
        let listening = workers.listen(&endpoint, false, serve).map_err(failed)?;
        self.0.push(OpenListener { configured: endpoint, listening });
        Ok(())
    }

    pub(super) fn listens_on(&self, endpoint: &Endpoint) -> bool {
        self.0.iter().any(|listener| listener.configured == *endpoint)
    }

    /// Adds listeners opened during a reload.
    pub(super) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Stops all other listeners; open connections stay open. Returns the stopped endpoints.
    pub(super) fn keep_only(&mut self, endpoints: &[Endpoint]) -> Vec<Endpoint> {
        let (kept, gone): (Vec<_>, Vec<_>) =
            self.0.drain(..).partition(|listener| endpoints.contains(&listener.configured));
        self.0 = kept;
        let stop = |listener: OpenListener| {
            listener.listening.stop();
            listener.listening.endpoint().clone()
        };
        gone.into_iter().map(stop).collect()
    }

    /// Takes over an inherited socket. Returns whether there is one.
    pub(super) fn take_over(&self, endpoint: &Endpoint) -> bool {
        let found = self.0.iter().find(|listener| listener.configured == *endpoint);
        found.inspect(|listener| listener.listening.take_over()).is_some()
    }

    /// Returns the socket options that the kernel refused.
    pub(super) fn refused(&self) -> Vec<String> {
        let mut refused: Vec<String> =
            self.0.iter().flat_map(|listener| listener.listening.refused().to_vec()).collect();
        refused.dedup();
        refused
    }

    pub(super) fn addresses(&self) -> Vec<Endpoint> {
        self.0.iter().map(|listener| listener.listening.endpoint().clone()).collect()
    }

    /// Stops all of them, and removes the files of Unix sockets.
    pub(super) fn stop(&mut self) {
        self.keep_only(&[]);
    }
}

/// Returns the endpoints of a configuration.
pub(crate) fn endpoints(config: &Config) -> Result<Vec<Endpoint>, StartError> {
    if !config.listen.is_empty() {
        let endpoints: Vec<Endpoint> =
            config.listen.iter().map(|text| endpoint(text)).collect::<Result<_, _>>()?;
        // Port 0 picks another free port each time, so it may repeat.
        let is_any = |one: &Endpoint| matches!(one, Endpoint::Tcp(address) if address.port() == 0);
        let mut places = endpoints.iter().enumerate();
        let twice = places.find(|(at, one)| !is_any(one) && endpoints[..*at].contains(one));
        if let Some((_, endpoint)) = twice {
            return Err(StartError::Twice { endpoint: endpoint.clone() });
        }
        return Ok(endpoints);
    }
    match &config.uds {
        Some(path) => Ok(vec![Endpoint::Unix(path.clone())]),
        None => Ok(vec![tcp(&config.host, config.port)?]),
    }
}

/// Parses `127.0.0.1:80`, `[::1]:80`, `localhost:80`, `unix:/run/site.sock` or `fd:3`.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, StartError> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Endpoint::Unix(path.into()));
    }
    if let Some(number) = text.strip_prefix("fd:").and_then(|number| number.parse().ok()) {
        return Ok(Endpoint::Inherited(number));
    }
    let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it has no port");
        return Err(StartError::Host { host: text.to_owned(), error });
    };
    tcp(host.trim_start_matches('[').trim_end_matches(']'), port)
}

fn tcp(host: &str, port: u16) -> Result<Endpoint, StartError> {
    let unknown = |error| StartError::Host { host: host.to_owned(), error };
    first_address((host, port)).map(Endpoint::Tcp).map_err(unknown)
}
