//! The flags of `gustnado doctor`.

use clap::{Arg, ArgAction, ArgMatches, Command};
use gustnado::config::Config;
use gustnado::site::SiteFile;
use std::path::{Path, PathBuf};

/// The kernel's settings.
pub(super) const SETTINGS: &str = "/proc/sys";

/// Options of `gustnado doctor`.
#[derive(Debug)]
pub(crate) struct DoctorOptions {
    pub(super) action: DoctorAction,
    /// The file of old values; `None`: in the user's state folder.
    pub(super) state: Option<PathBuf>,
    /// Whether to change settings without a question.
    pub(super) yes: bool,
    /// The folder of settings.
    pub(super) settings: PathBuf,
    /// The settings of a server, for its certificates.
    pub(super) config: Config,
    pub(super) site: Option<SiteFile>,
}

/// Action of `gustnado doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoctorAction {
    /// Checks and advises.
    Look,
    /// Changes settings.
    Apply,
    /// Restores settings.
    Restore,
}

/// Returns the command with its flags.
pub(crate) fn command() -> Command {
    let switch = |name| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let file = |name, placeholder| {
        let parser = clap::value_parser!(PathBuf);
        Arg::new(name).long(name).value_name(placeholder).value_parser(parser)
    };
    Command::new("doctor")
        .about("Look at this machine and say what to change for many connections")
        .arg(
            switch("apply")
                .conflicts_with("restore")
                .help("Show what contests on this machine need changed, and change it (as root)"),
        )
        .arg(switch("restore").help("Put back what --apply changed"))
        .arg(switch("yes").help("Change without a question"))
        .arg(
            file("state", "FILE")
                .help("Where --apply keeps old values [~/.local/state/gustnado/doctor.json]"),
        )
        .arg(
            file("proc-sys", "DIR")
                .help("Where settings are read and written; with another one, nothing else is")
                .default_value(SETTINGS),
        )
}

impl DoctorOptions {
    /// Reads the flags.
    ///
    /// - `config`, `site`: what a server would serve with.
    pub(crate) fn read(matches: &ArgMatches, config: Config, site: Option<SiteFile>) -> Self {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let action = match (matches.get_flag("apply"), matches.get_flag("restore")) {
            (true, _) => DoctorAction::Apply,
            (_, true) => DoctorAction::Restore,
            _ => DoctorAction::Look,
        };
        Self {
            action,
            state: path("state"),
            yes: matches.get_flag("yes"),
            settings: path("proc-sys").unwrap_or_else(|| SETTINGS.into()),
            config,
            site,
        }
    }

    /// Returns whether the folder is this machine's, not a test's.
    pub(super) fn is_machine(&self) -> bool {
        self.settings == Path::new(SETTINGS)
    }
}
