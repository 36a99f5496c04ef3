//! The flags of `check` besides the settings.

use std::net::IpAddr;

use clap::{Arg, ArgAction, ArgMatches, Command};
use gustnado::AskedRequest;

use crate::usage_error::UsageError;

/// Options of `gustnado check --explain`.
#[derive(Debug)]
pub(crate) struct ExplainOptions {
    pub(crate) asked: AskedRequest,
    pub(crate) is_json: bool,
}

/// What `check` is asked for.
pub(super) enum CheckAction {
    /// Every setting, and whether a server could start.
    Settings {
        /// Names are resolved, and what the settings name is connected to.
        is_online: bool,
    },
    /// The settings as a configuration file.
    Effective,
    /// What happens with a request.
    Explain(ExplainOptions),
}

/// Adds the flags.
pub(super) fn with_flags(check: Command) -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let explain = Arg::new("explain")
        .long("explain")
        .value_name("REQUEST")
        .conflicts_with_all(["effective", "online"])
        .help("Say what happens with a request, and why: 'GET https://example.org/a/b.js'")
        .long_help(
            "Say what happens with a request, and why: site, route, file, cache rule, coding, \
             access, response. The server is asked inside this process, without a network.\n\n\
             gustnado check --explain 'GET https://example.org/a/b.js' site.toml",
        );
    let field = Arg::new("field")
        .long("header")
        .short('H')
        .value_name("FIELD")
        .action(ArgAction::Append)
        .requires("explain")
        .help("With --explain: a header field of the request, such as 'Accept-Encoding: br'");
    let from = Arg::new("from")
        .long("from")
        .value_name("ADDRESS")
        .requires("explain")
        .help("With --explain: the address of the client [127.0.0.1]");
    check
        .arg(
            flag("effective").help(
                "Print everything in effect as a configuration file, each value with its origin",
            ),
        )
        .arg(
            flag("online")
                .conflicts_with("effective")
                .help("Resolve the names that the settings have, and connect to what they name"),
        )
        .arg(explain)
        .args([field, from])
        .arg(flag("json").requires("explain").help("With --explain: print JSON"))
}

/// Returns what is asked for.
pub(super) fn read(found: &ArgMatches) -> Result<CheckAction, UsageError> {
    let Some(text) = found.get_one::<String>("explain") else {
        let is_online = found.get_flag("online");
        let is_effective = found.get_flag("effective");
        return Ok(if is_effective {
            CheckAction::Effective
        } else {
            CheckAction::Settings { is_online }
        });
    };
    let wrong = |flag: &str, error: &dyn std::fmt::Display| {
        UsageError::of_usage(format!("{flag}: {error}"))
    };
    let mut asked = AskedRequest::parse(text).map_err(|error| wrong("--explain", &error))?;
    for field in found.get_many::<String>("field").into_iter().flatten() {
        asked = asked.field(field).map_err(|error| wrong("--header", &error))?;
    }
    if let Some(from) = found.get_one::<String>("from") {
        let client: IpAddr = from.parse().map_err(|_| {
            let line = format!("expected an IP address such as 192.0.2.7, found {from:?}");
            wrong("--from", &line)
        })?;
        asked = asked.from(client);
    }
    Ok(CheckAction::Explain(ExplainOptions { asked, is_json: found.get_flag("json") }))
}
