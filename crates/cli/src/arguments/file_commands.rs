//! The subcommands that write configuration files: `init` and `import`.

use clap::{Arg, ArgAction, ArgMatches, Command, builder::OsStringValueParser};
use std::ffi::OsString;
use std::path::PathBuf;

use super::Subcommand;
use crate::import::ImportOptions;
use crate::init::{InitOptions, InitTemplate};
use crate::usage_error::UsageError;
use gustnado::config::nearest;

/// Returns both subcommands.
pub(super) fn commands() -> [Command; 2] {
    let path = |id: &'static str, name: &'static str| {
        Arg::new(id).value_name(name).value_parser(OsStringValueParser::new())
    };
    let force = || {
        let help = "Replace a file that is there already";
        Arg::new("force").long("force").action(ArgAction::SetTrue).help(help)
    };
    let kinds = InitTemplate::NAMES.join(", ");
    let init = Command::new("init")
        .about("Write a configuration file with comments, to begin with")
        .override_usage("gustnado init KIND [--force] [FILE]")
        .arg(Arg::new("kind").value_name("KIND").help(format!("What it is for: {kinds}")))
        .arg(path("file", "FILE").help("File to write [site.toml]"))
        .arg(force());
    let import = Command::new("import")
        .about("Make a configuration file of nginx's; prints what could not be taken over")
        .override_usage("gustnado import nginx.conf [-o FILE [--force]]")
        .after_help(
            "It fails closed: a location with a directive that is not understood responds with \
             403.\nExit codes: 0 imported, 78 the file is not in nginx's syntax, 1 it cannot be \
             written.",
        )
        .arg(path("from", "nginx.conf").help("nginx's configuration file"))
        .arg(path("to", "FILE").short('o').long("output").help("File to write [standard output]"))
        .arg(force());
    [init, import]
}

/// Returns what is asked for, if it is one of these.
pub(super) fn read(name: &str, found: &ArgMatches) -> Option<Result<Subcommand, UsageError>> {
    match name {
        "init" => Some(init(found)),
        "import" => Some(import(found)),
        _ => None,
    }
}

fn init(found: &ArgMatches) -> Result<Subcommand, UsageError> {
    let all = InitTemplate::NAMES.join(", ");
    let Some(kind) = found.get_one::<String>("kind") else {
        return Err(UsageError::of_usage(format!("init: expected one of {all}, found none")));
    };
    let Some(template) = InitTemplate::of(kind) else {
        let near = nearest(kind, InitTemplate::NAMES.into_iter());
        let remedy = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        let line = format!("init: expected one of {all}, found {kind:?}{remedy}");
        return Err(UsageError::of_usage(line));
    };
    let file = path(found, "file").unwrap_or_else(|| "site.toml".into());
    Ok(Subcommand::Init(InitOptions { template, file, force: found.get_flag("force") }))
}

fn import(found: &ArgMatches) -> Result<Subcommand, UsageError> {
    let Some(from) = path(found, "from") else {
        let line = "import: expected nginx's configuration file, found none; \
                    for instance /etc/nginx/nginx.conf";
        return Err(UsageError::of_usage(line));
    };
    let to = path(found, "to").filter(|to| to.as_os_str() != "-");
    Ok(Subcommand::Import(ImportOptions { from, to, force: found.get_flag("force") }))
}

fn path(found: &ArgMatches, id: &str) -> Option<PathBuf> {
    found.get_one::<OsString>(id).map(PathBuf::from)
}
