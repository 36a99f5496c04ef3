//! Checks of a configuration, without a start.

use gustnado_app::app::ServerShared;
use gustnado_config::Networks;
use gustnado_observe::access_log::AccessLog;

use super::listeners::NameLookup;
use super::{RouteResources, StartError, account, acme, listeners};
use crate::builder::Server;
use crate::config::{Config, Machine};

/// Builds the routes of a server without starting it.
pub(crate) fn check_server(builder: &Server) -> Result<(), StartError> {
    AccessLog::format_of(&builder.config)?;
    account(&builder.config)?;
    let plans = listeners::plans(builder, NameLookup::AtStart)?;
    if acme::is_there(&builder.config, listeners::has_plain(&plans))? {
        listeners::tls_acceptor(builder, &plans).map(drop)?;
    }
    let machine = Machine::read();
    let resources = RouteResources::new(&builder.config, 1);
    let server = ServerShared::new(1, "", resources.folders.counts());
    resources.tables(builder, &server, &machine, false).map(drop)
}

/// Checks the networks of a configuration that did not come from flags or a file, which are checked
/// when they are read; without `proxy-allow-from` any peer could claim any address.
pub(super) fn check_networks(config: &Config) -> Result<(), StartError> {
    for (setting, texts) in [
        ("forwarded-allow-ips", &config.forwarded_allow_ips),
        ("proxy-allow-from", &config.proxy_allow_from),
        ("metrics-allow-from", &config.metrics_allow_from),
    ] {
        let wrong = |text: &str| StartError::Network { setting, text: text.to_owned() };
        Networks::of(texts).map_err(wrong)?;
    }
    if config.proxy_protocol && config.proxy_allow_from.is_empty() {
        return Err(StartError::AnyProxy);
    }
    Ok(())
}
