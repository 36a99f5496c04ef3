//! Whether a certificate authority can be reached.

use std::time::Duration;

use gustnado::client::{Client, ClientError, ClientOptions, ConnectorSettings, Trust};
use gustnado::config::Config;
use gustnado::task::block_on;

use super::{NetworkFinding, NetworkVerdict};

/// Time for the directory, in all.
const TIME: Duration = Duration::from_secs(15);
/// Bytes of a directory; they have a few hundred.
const BYTES_MAX: usize = 64 << 10;

/// Asks for the directory of the authority (RFC 8555 §7.1.1).
pub(super) fn directory(config: &Config) -> NetworkFinding {
    let url = &config.acme_directory;
    let of = format!("acme-directory {url}");
    let trust = config.acme_ca.clone().map_or(Trust::System, Trust::Authorities);
    let tls = ConnectorSettings { trust, ..ConnectorSettings::default() };
    let options = ClientOptions { tls, total_timeout: Some(TIME), ..ClientOptions::default() };
    let asked = block_on(async {
        let mut response = Client::new(options).get(url).send().await?;
        Ok::<_, ClientError>((response.status(), response.text(BYTES_MAX).await?))
    });
    let (verdict, text) = match asked {
        Ok(Ok((200, text))) if text.contains("\"newOrder\"") => {
            (NetworkVerdict::Well, "it answers".to_owned())
        }
        Ok(Ok((status, _))) => {
            let line =
                format!("expected a directory (RFC 8555), found status {status}; correct it");
            (NetworkVerdict::Failed, line)
        }
        Ok(Err(error)) => (NetworkVerdict::Failed, chain(&error)),
        Err(error) => (NetworkVerdict::Failed, error.to_string()),
    };
    NetworkFinding::new(of, verdict, text)
}

/// Returns an error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let line = cause.to_string();
        if !text.contains(&line) {
            text = format!("{text}: {line}");
        }
        source = cause.source();
    }
    text
}
