//! The subcommands `passwd` and `sign`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::OsStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gustnado::HashKind;
use gustnado::config::Unit;

use crate::access::AccessAction;
use crate::usage_error::UsageError;

/// Returns the subcommands with their flags.
pub(super) fn commands() -> [Command; 2] {
    let user = Arg::new("user").value_name("USER").required(true).help("The user's name");
    let bcrypt = Arg::new("bcrypt")
        .long("bcrypt")
        .action(ArgAction::SetTrue)
        .help("Hash by bcrypt, which other servers read, instead of Argon2");
    let url = Arg::new("url")
        .value_name("URL")
        .required(true)
        .help("A path such as /a.mp4, or a whole URL");
    let key = Arg::new("key")
        .long("key")
        .value_name("FILE")
        .required(true)
        .value_parser(OsStringValueParser::new())
        .help("The file that --signed-urls names; its first key signs");
    let method = Arg::new("method")
        .long("method")
        .value_name("METHOD")
        .default_value("GET")
        .help("The method that it is good for; GET is good for HEAD, too");
    let lasts = Arg::new("for")
        .long("for")
        .value_name("TIME")
        .default_value("1h")
        .help("How long the URL is valid, such as 30m, 1h or 7d");
    [
        Command::new("passwd")
            .about("Print a line of a --basic-auth file: a user and the hash of a password")
            .after_help(
                "The password is typed twice, or the first line of standard input:\n  \
                 gustnado passwd ann >> users",
            )
            .args([user, bcrypt]),
        Command::new("sign")
            .about("Print a URL that --signed-urls lets through for a time")
            .after_help("gustnado sign https://example.org/a.mp4 --key keys --for 1h")
            .args([url, key, method, lasts]),
    ]
}

/// Returns what is asked; `None` for another subcommand.
pub(super) fn read(name: &str, flags: &ArgMatches) -> Option<Result<AccessAction, UsageError>> {
    let text = |name: &str| flags.get_one::<String>(name).cloned().unwrap_or_default();
    match name {
        "passwd" => {
            let is_bcrypt = flags.get_flag("bcrypt");
            let kind = if is_bcrypt { HashKind::Bcrypt } else { HashKind::Argon2 };
            Some(Ok(AccessAction::Passwd { user: text("user"), kind }))
        }
        "sign" => {
            let found = text("for");
            let lasts = Unit::Duration.read(&found).filter(|lasts| *lasts > 0);
            let keys = flags.get_one::<OsString>("key").cloned().unwrap_or_default();
            Some(match lasts {
                Some(lasts) => Ok(AccessAction::Sign {
                    method: text("method"),
                    url: text("url"),
                    keys: PathBuf::from(keys),
                    lasts: Duration::from_millis(lasts),
                }),
                None => Err(UsageError::of_usage(format!(
                    "--for: expected a time such as 30m, 1h or 7d, found {found:?}; write it so"
                ))),
            })
        }
        _ => None,
    }
}
