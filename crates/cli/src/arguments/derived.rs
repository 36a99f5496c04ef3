//! What derives from the declaration of the command line: completions for shells, and manual pages.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use clap_complete::Shell;
use gustnado::config::{Field, TUNABLES};

use super::{command, first_word};
use crate::usage_error::UsageError;

/// What `completions` takes.
pub(super) const SHELLS: &str = "bash, elvish, fish, powershell or zsh";

/// The subcommands, for help.
pub(super) fn commands() -> [Command; 2] {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(value_parser!(Shell))
        .help(SHELLS);
    let topic = Arg::new("topic")
        .value_name("COMMAND")
        .help("The subcommand whose page is printed; without it, the page of the command itself");
    [
        Command::new("completions")
            .about("Print the completions of a shell, such as `gustnado completions bash`")
            .after_help(
                "For bash: gustnado completions bash > ~/.local/share/bash-completion/completions/\
                 gustnado\nFor zsh:  gustnado completions zsh > a folder of $fpath, as _gustnado\n\
                 For fish: gustnado completions fish > ~/.config/fish/completions/gustnado.fish",
            )
            .arg(shell),
        Command::new("man")
            .about("Print a manual page; `gustnado man serve | man -l -` shows it")
            .arg(topic),
    ]
}

/// The subcommand of the Python package, for help.
pub(super) fn run_elsewhere() -> Command {
    let about = "Serve a Python application (comes with the Python package: `gustnado help run`)";
    Command::new("run").about(about).long_about(first_word::RUN).disable_help_flag(true)
}

/// Subcommands that print references.
pub(super) fn references() -> Command {
    let counters = Arg::new("counters").long("counters").help("Print docs/counters.md");
    let counters = counters.action(ArgAction::SetTrue);
    Command::new("tuning").hide(true).about("Print docs/tuning.md").arg(counters)
}

/// Returns the completions of the shell that was asked for.
pub(super) fn completions(matches: &ArgMatches) -> String {
    let shell = matches.get_one::<Shell>("shell").copied().unwrap_or(Shell::Bash);
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut with_values(command()), "gustnado", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Adds what a shell can complete: the names of a choice, files and folders. The command line is
/// not read by these, as a setting refuses a value with a message of its own.
fn with_values(command: Command) -> Command {
    ["serve", "check", "doctor"].into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| subcommand.mut_args(with_value))
    })
}

fn with_value(arg: Arg) -> Arg {
    let field = |tunable: &'static gustnado::config::Tunable| &tunable.field;
    match (arg.get_id().as_str(), TUNABLES.iter().find(|one| one.name == arg.get_id()).map(field)) {
        ("root" | "config", _) | (_, Some(Field::Path { .. })) => {
            arg.value_hint(ValueHint::AnyPath)
        }
        (_, Some(Field::Choice { names, .. })) => {
            arg.value_parser(PossibleValuesParser::new(*names))
        }
        _ => arg,
    }
}

/// Returns a manual page as roff.
///
/// # Errors
/// There is no such subcommand.
pub(super) fn manual(matches: &ArgMatches) -> Result<String, UsageError> {
    let topic = matches.get_one::<String>("topic").map(String::as_str);
    let mut all = command();
    all.build();
    let page = match topic {
        None => all,
        Some(name) => all.find_subcommand(name).cloned().ok_or_else(|| {
            let line = "no such command; `gustnado --help` lists them";
            UsageError::of_usage(format!("man {name}: {line}"))
        })?,
    };
    let manual = clap_mangen::Man::new(page)
        .manual("Gustnado")
        .source(concat!("gustnado ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    _ = manual.render(&mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}
