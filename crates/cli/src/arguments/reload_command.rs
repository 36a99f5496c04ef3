//! The subcommand `reload`.

use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::path::PathBuf;

use super::{ServeOptions, Subcommand, settings};
use crate::usage_error::UsageError;

/// Returns the subcommand with the flags that tell where the control socket is.
pub(super) fn command() -> Command {
    let is_one =
        |arg: &clap::Arg| ["root", "config", "control"].iter().any(|id| arg.get_id() == id);
    Command::new("reload")
        .about("Have a running server read its configuration again, and print the result")
        .override_usage("gustnado reload --control unix:PATH\n       gustnado reload FILE.toml")
        .after_help(
            "Exit codes: 0 taken, 78 refused (the reasons are printed), 1 no server or no reply.",
        )
        .args(settings().filter(is_one))
}

/// Returns the control socket: that of the flag, which needs no file to be well, or that of the
/// settings.
pub(super) fn socket(
    flags: &ArgMatches,
    options: impl FnOnce() -> Result<Box<ServeOptions>, UsageError>,
) -> Result<Subcommand, UsageError> {
    let by_flag = flags.get_one::<OsString>("control").filter(|path| !path.is_empty());
    let socket = match by_flag {
        Some(path) => {
            let path = PathBuf::from(path);
            let plain = path.to_str().and_then(|text| text.strip_prefix("unix:"));
            Some(plain.map_or_else(|| path.clone(), PathBuf::from))
        }
        None => options()?.settings.config.control,
    };
    Ok(Subcommand::Reload(socket))
}
