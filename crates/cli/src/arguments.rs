//! The command line. Flags derive from the table of settings. Every mistake becomes one line with
//! what was found and what to do.

mod access_command;
mod acme_command;
mod check_command;
mod counterparts;
mod derived;
mod file_commands;
mod first_word;
mod help;
mod reload_command;
#[cfg(test)]
mod tests;

use crate::access::AccessAction;
use crate::compress::arguments as compress;
use crate::import::ImportOptions;
use crate::init::InitOptions;
use crate::usage_error::UsageError;
use crate::{doctor, exit, lab};

pub(crate) use acme_command::AcmeAction;
use check_command::CheckAction;
pub(crate) use check_command::ExplainOptions;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::OsStringValueParser};
use gustnado::Server;
use gustnado::config::{Origin, Settings, TUNABLES, Tunable, nearest};
use gustnado::site::{ConfigFiles, SiteError, SiteFile};
use help::{FIRST, GROUPS, SERVE, aliases};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A subcommand with its options.
#[derive(Debug)]
pub(crate) enum Subcommand {
    /// Serve until a signal.
    Serve(Box<ServeOptions>),
    /// Print all settings.
    Check(Box<ServeOptions>),
    /// The same, and connect to what they name.
    CheckOnline(Box<ServeOptions>),
    /// Say what happens with a request.
    Explain(Box<ServeOptions>, ExplainOptions),
    /// Print a line of a password file, or a signed URL.
    Access(AccessAction),
    /// Look after the certificate of an authority.
    Acme(AcmeAction, Box<ServeOptions>),
    /// Print all settings in effect as a configuration file.
    Effective(Box<ServeOptions>),
    /// Ask the server of a control socket to read its configuration again.
    Reload(Option<PathBuf>),
    /// Write a configuration file to begin with.
    Init(InitOptions),
    /// Make a configuration file of nginx's.
    Import(ImportOptions),
    /// Print the schema of configuration files.
    Schema,
    /// Check the machine, and change its settings on request.
    Doctor(Box<doctor::DoctorOptions>),
    /// Write compressed siblings of a folder's files.
    Compress(compress::CompressOptions),
    /// Measure servers.
    Lab(lab::LabSubcommand),
    /// Print the reference of all settings.
    Tuning,
    /// Print the reference of all counters.
    Counters,
    /// Print this text: help, or the version.
    Page(String),
    /// Print this text as it is: a manual page, or the completions of a shell.
    Raw(String),
}

/// Options of `gustnado serve` and `gustnado check`: the settings and their sources.
#[derive(Debug)]
pub(crate) struct ServeOptions {
    pub(crate) settings: Settings,
    pub(crate) site: Option<SiteFile>,
    sources: Sources,
    /// The files of the last configuration that was refused since.
    refused: Vec<Arc<Path>>,
}

/// Sources of the settings, which a reload reads again.
#[derive(Debug, Clone)]
struct Sources {
    flags: Vec<(&'static str, OsString)>,
    environment: Vec<(OsString, OsString)>,
    file: Option<PathBuf>,
}

impl Sources {
    fn read(self) -> Result<Box<ServeOptions>, UsageError> {
        let site = self.site().map_err(|error| of_file(&error))?;
        self.with_site(site)
    }

    fn site(&self) -> Result<Option<SiteFile>, SiteError> {
        self.file.as_deref().map(SiteFile::read).transpose()
    }

    fn with_site(self, site: Option<SiteFile>) -> Result<Box<ServeOptions>, UsageError> {
        let environment = self.environment.iter().cloned();
        let settings =
            Settings::layered(&self.flags, environment, site.as_ref().map(SiteFile::file_settings))
                .map_err(|error| UsageError { line: error.to_string(), code: error.exit_code() })?;
        Ok(Box::new(ServeOptions { settings, site, sources: self, refused: Vec::new() }))
    }
}

fn of_file(error: &SiteError) -> UsageError {
    UsageError { line: error.to_string(), code: exit::CONFIG }
}

impl ServeOptions {
    /// Reads the sources again, for a reload.
    ///
    /// # Errors
    /// A mistake in the file.
    pub(crate) fn again(&mut self) -> Result<Box<Self>, UsageError> {
        match self.sources.site() {
            Ok(site) => self.sources.clone().with_site(site),
            Err(error) => {
                self.refused = error.files().to_vec();
                Err(of_file(&error))
            }
        }
    }

    /// Reads the sources again, to see whether that can be done.
    ///
    /// # Errors
    /// As [`ServeOptions::again`].
    pub(crate) fn try_again(&self) -> Result<Box<Self>, UsageError> {
        self.sources.clone().read()
    }

    /// Returns the files to look at for changes: those of the configuration, and of one that was
    /// refused since.
    pub(crate) fn watched_files(&self) -> ConfigFiles {
        let mut files =
            self.site.as_ref().map_or_else(ConfigFiles::default, |site| site.files().clone());
        self.refused.iter().for_each(|file| files.add(file));
        files
    }

    /// Returns the configuration file.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.sources.file.as_deref()
    }

    /// Returns a text without values of the environment that must not be shown.
    pub(crate) fn shown(&self, text: &str) -> String {
        self.site.as_ref().map_or_else(|| text.to_owned(), |site| site.shown(text))
    }

    /// Returns the configured server.
    pub(crate) fn server(&self) -> Server {
        let mut config = self.settings.config.clone();
        if self.shows_requests() {
            config.access_log = Some(STDERR.into());
            if *self.settings.origin("access-log-format") == Origin::Default {
                BRIEF.clone_into(&mut config.access_log_format);
            }
        }
        match &self.site {
            Some(site) => site.server_with(config),
            None => Server::of_config(config),
        }
    }

    /// Returns whether requests are logged to the terminal, which any access log setting overrides.
    fn shows_requests(&self) -> bool {
        let settings = &self.settings;
        let is_unsaid = *settings.origin("access-log") == Origin::Default;
        is_unsaid && !settings.config.quiet && std::io::stderr().is_terminal()
    }

    /// Formats a start error, with its place in the file if it has one.
    pub(crate) fn line(&self, error: &gustnado::StartError) -> String {
        match self.site.as_ref().and_then(|site| site.place_of(error)) {
            Some(place) => format!("{place}: {error}"),
            None => error.to_string(),
        }
    }
}

/// The access log of a terminal, and its format.
const STDERR: &str = "/dev/stderr";
const BRIEF: &str = "brief";
const TOP_FLAGS: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// Reads the command line (`args`, the program's name first) and the environment.
///
/// # Errors
/// A message and an exit code for a mistake.
pub(crate) fn read(
    args: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Subcommand, UsageError> {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(error) = first_word::refuse(args.get(1..).unwrap_or_default()) {
        return Err(error);
    }
    let args = with_command(args);
    let of = args.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return page_or_refusal(&error, &of),
    };
    let options = |matches: &ArgMatches| sources(matches, environment.into_iter().collect()).read();
    match matches.subcommand() {
        Some(("check", flags)) => {
            let action = check_command::read(flags)?;
            options(flags).map(|options| match action {
                CheckAction::Settings { is_online: false } => Subcommand::Check(options),
                CheckAction::Settings { is_online: true } => Subcommand::CheckOnline(options),
                CheckAction::Effective => Subcommand::Effective(options),
                CheckAction::Explain(explain) => Subcommand::Explain(options, explain),
            })
        }
        Some(("doctor", flags)) => options(flags).map(|options| {
            let (config, site) = (options.settings.config, options.site);
            Subcommand::Doctor(Box::new(doctor::DoctorOptions::read(flags, config, site)))
        }),
        Some(("reload", flags)) => reload_command::socket(flags, || options(flags)),
        Some(("compress", flags)) => compress::read(flags).map(Subcommand::Compress),
        Some(("schema", _)) => Ok(Subcommand::Schema),
        Some(("tuning", found)) if found.get_flag("counters") => Ok(Subcommand::Counters),
        Some(("tuning", _)) => Ok(Subcommand::Tuning),
        Some(("completions", found)) => Ok(Subcommand::Raw(derived::completions(found))),
        Some(("man", found)) => derived::manual(found).map(Subcommand::Raw),
        Some((name, found)) if let Some(written) = file_commands::read(name, found) => written,
        Some((name, flags)) if let Some((action, flags)) = acme_command::read(name, flags) => {
            options(flags).map(|options| Subcommand::Acme(action, options))
        }
        Some((name, flags)) if let Some(action) = access_command::read(name, flags) => {
            action.map(Subcommand::Access)
        }
        Some((name, flags)) => match lab::read(name, flags) {
            Some(subcommand) => subcommand.map(Subcommand::Lab),
            None => options(flags).map(Subcommand::Serve),
        },
        None => Ok(Subcommand::Page(command().render_help().to_string())),
    }
}

/// Collects flags and variables. A path argument that ends in `.toml` and is not a folder is the
/// configuration file.
fn sources(matches: &ArgMatches, environment: Vec<(OsString, OsString)>) -> Sources {
    let mut flags = given(matches);
    let is_file = |path: &Path| path.extension().is_some_and(|end| end == "toml") && !path.is_dir();
    let is_config = |(name, value): &(&str, OsString)| *name == "root" && is_file(value.as_ref());
    let by_name = flags.iter().position(is_config).map(|at| flags.remove(at).1);
    let by_flag = matches.get_one::<OsString>("config").cloned();
    let by_variable = || {
        let found = environment.iter().find(|(name, _)| name == "GUSTNADO_CONFIG");
        found.map(|(_, path)| path.clone()).filter(|path| !path.is_empty())
    };
    let file = by_flag.or(by_name).or_else(by_variable).map(PathBuf::from);
    Sources { flags, environment, file }
}

/// `gustnado DIR` and `gustnado --port 80` mean `gustnado serve …`.
fn with_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let first = args.get(1).and_then(|word| word.to_str());
    if !first.is_some_and(is_command_or_flag) {
        args.insert(args.len().min(1), "serve".into());
    }
    args
}

/// Returns whether a first word is a subcommand of this build, or a flag of the command itself.
fn is_command_or_flag(word: &str) -> bool {
    first_word::COMMANDS.contains(&word) || TOP_FLAGS.contains(&word) || lab::is_command(word)
}

fn command() -> Command {
    let version = concat!(env!("CARGO_PKG_VERSION"), " (io_uring and epoll)");
    let serve = "Serve a folder, or the built-in page";
    let check = "Print every setting in effect and where it came from, then stop";
    let schema = "Print the JSON Schema of configuration files, for editors";
    Command::new("gustnado")
        .version(version)
        .about("A very small, very fast, highly tunable HTTP server")
        .override_usage("gustnado [COMMAND]\n       gustnado [OPTIONS] [DIR]")
        .after_help(
            "`gustnado DIR` is short for `gustnado serve DIR`; `gustnado` alone serves a page \
             about itself.\n`gustnado serve --config site.toml` serves what a file says.\n\
             `gustnado serve --help` lists every setting.",
        )
        .subcommand(Command::new("serve").about(serve).help_template(SERVE).args(settings()))
        .subcommand(check_command::with_flags(Command::new("check").about(check).args(settings())))
        // Otherwise the synopsis of a manual page names every setting.
        .mut_subcommand("serve", |serve| serve.override_usage("gustnado serve [OPTIONS] [DIR]"))
        .mut_subcommand("check", |check| check.override_usage("gustnado check [OPTIONS] [DIR]"))
        .subcommand(derived::run_elsewhere())
        .subcommand(reload_command::command())
        .subcommand(compress::command())
        .subcommands(file_commands::commands())
        .subcommand(acme_command::command())
        .subcommands(access_command::commands())
        .subcommands(lab::commands())
        .subcommand(doctor::command().args(of_certificates()))
        .subcommand(Command::new("schema").about(schema))
        .subcommands(derived::commands())
        .subcommand(derived::references())
}

/// The arguments of `serve`, `check` and `acme`.
fn settings() -> impl Iterator<Item = Arg> {
    let config = Arg::new("config")
        .long("config")
        .short('c')
        .value_name("FILE")
        .value_parser(OsStringValueParser::new())
        .overrides_with("config")
        .help("Configuration file; flags and variables count more [none]")
        .long_help(
            "Configuration file: settings, listeners, sites, routes. Flags and variables count \
             more than what it says.\n\nVariable: GUSTNADO_CONFIG.",
        );
    let place = |tunable: &&Tunable| {
        let first = FIRST.iter().position(|name| *name == tunable.name);
        let group = GROUPS.iter().position(|group| *group == tunable.group);
        (first.unwrap_or(FIRST.len()), group)
    };
    let mut all: Vec<&'static Tunable> = TUNABLES.iter().collect();
    all.sort_by_key(place);
    let of = |is_first: bool| move |tunable: &&Tunable| FIRST.contains(&tunable.name) == is_first;
    let first: Vec<Arg> = all.iter().copied().filter(of(true)).map(argument).collect();
    let others: Vec<Arg> = all.into_iter().filter(of(false)).map(argument).collect();
    first.into_iter().chain([config]).chain(others)
}

/// Those that name certificates, for `doctor`.
fn of_certificates() -> impl Iterator<Item = Arg> {
    let is_one =
        |arg: &Arg| ["config", "tls-cert", "tls-key"].iter().any(|name| arg.get_id() == name);
    settings().filter(is_one)
}

fn argument(tunable: &'static Tunable) -> Arg {
    let default = if tunable.default.is_empty() { "none" } else { tunable.default };
    let short = format!("{} [{default}]", tunable.doc);
    let long = format!(
        "{}\n\nTakes {}.\nDefault: {default}. Variable: {}.",
        tunable.doc,
        tunable.takes(),
        tunable.variable()
    );
    let arg = Arg::new(tunable.name)
        .value_name(tunable.placeholder())
        .value_parser(OsStringValueParser::new())
        .allow_negative_numbers(true)
        .help(short)
        .long_help(long);
    let arg = if tunable.repeats() {
        arg.action(ArgAction::Append)
    } else {
        arg.action(ArgAction::Set).overrides_with(tunable.name)
    };
    if tunable.is_argument() {
        return arg;
    }
    let arg = arg.long(tunable.name).aliases(aliases(tunable.name));
    let is_first = FIRST.contains(&tunable.name);
    let arg = if is_first { arg } else { arg.help_heading(tunable.group.heading()) };
    match (tunable.bare_value(), tunable.name) {
        (Some(bare), _) => arg.num_args(0..=1).require_equals(true).default_missing_value(bare),
        (None, "port") => arg.short('p'),
        (None, _) => arg,
    }
}

fn given(matches: &ArgMatches) -> Vec<(&'static str, OsString)> {
    // A subcommand may have some of the settings only.
    let value = |tunable: &Tunable| {
        let values = matches.try_get_many::<OsString>(tunable.name).ok().flatten()?;
        // A list that may be given several times.
        let values: Vec<&OsStr> = values.map(OsString::as_os_str).collect();
        Some(values.join(OsStr::new(",")))
    };
    TUNABLES.iter().filter_map(|tunable| Some((tunable.name, value(tunable)?))).collect()
}

fn page_or_refusal(error: &clap::Error, of: &str) -> Result<Subcommand, UsageError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Ok(Subcommand::Page(error.render().to_string()))
        }
        _ => Err(UsageError::of_usage(refusal_line(error, of))),
    }
}

/// One line instead of clap's several; `of` is the given subcommand.
fn refusal_line(error: &clap::Error, of: &str) -> String {
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let found = context(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if found.starts_with('-') => unknown_flag(&found, of),
        ErrorKind::UnknownArgument if ["serve", "check"].contains(&of) => {
            first_word::not_a_folder(&found).unwrap_or_else(|| {
                format!("{found}: one folder is all that can be served; leave this one out")
            })
        }
        ErrorKind::UnknownArgument => format!("{found}: {of} takes nothing of that kind"),
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            format!("{found}: does not go together with {other}; leave one out")
        }
        ErrorKind::InvalidValue | ErrorKind::MissingRequiredArgument if of == "completions" => {
            let given = context(ContextKind::InvalidValue).filter(|given| !given.is_empty());
            let given = given.map_or("nothing".to_owned(), |given| format!("{given:?}"));
            format!("completions: expected {}, found {given}", derived::SHELLS)
        }
        ErrorKind::InvalidValue => format!("{found}: expected a value, found none; give one"),
        ErrorKind::MissingRequiredArgument if of == "contest" => {
            "contest: expected a file such as contests/c10k.toml, found none; `gustnado contest \
             --help` shows what else there is"
                .to_owned()
        }
        ErrorKind::TooManyValues | ErrorKind::NoEquals => {
            format!("{found}: write the value behind an equals sign")
        }
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or("not understood");
            let first = first.trim_start_matches("error: ").to_owned();
            format!("{first}; `gustnado --help` shows what there is")
        }
    }
}

/// Returns the counterpart of another server's flag, or else our flag with the nearest spelling.
fn unknown_flag(found: &str, of: &str) -> String {
    let is_serving = ["serve", "check"].contains(&of);
    if let Some(counterpart) = counterparts::find(found).filter(|_| is_serving) {
        return format!("{found}: {counterpart}");
    }
    let all = command();
    let flags = all.find_subcommand(of).into_iter().flat_map(Command::get_arguments);
    let flags: Vec<&str> = flags.filter_map(Arg::get_long).collect();
    let name = found.trim_start_matches('-');
    match nearest(name, flags.into_iter()).filter(|_| name.len() > 1) {
        Some(near) => format!("{found}: no such flag; did you mean --{near}?"),
        None => format!("{found}: no such flag; `gustnado {of} --help` lists them all"),
    }
}
