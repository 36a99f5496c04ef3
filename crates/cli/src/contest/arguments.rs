//! The flags of `gustnado contest`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};

/// A subcommand of `gustnado contest`.
#[derive(Debug, PartialEq)]
pub(crate) enum ContestSubcommand {
    /// Runs a contest, or checks its set-up.
    Run(Box<ContestOptions>),
    /// Compares two records.
    Compare(PathBuf, PathBuf),
    /// Makes the report of a record again.
    Report(PathBuf, MarkdownOptions),
    /// Lists the presets.
    Presets,
    /// Prints the file of a preset.
    Preset(String),
    /// Prints the reference of all keys of a file.
    Keys,
}

/// Where a contest's table in Markdown goes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MarkdownOptions {
    /// A page, or `-` for standard output.
    pub(crate) page: Option<PathBuf>,
    /// Whether a page gets results of another machine, of a tree with changes, or of a part.
    pub(crate) publish: bool,
}

/// Options of a contest.
#[derive(Debug, PartialEq)]
pub(crate) struct ContestOptions {
    pub(crate) file: PathBuf,
    pub(crate) output: Option<PathBuf>,
    pub(crate) check: bool,
    pub(crate) quick: bool,
    /// Whether the record in the output folder is continued.
    pub(crate) goes_on: bool,
    pub(crate) markdown: MarkdownOptions,
    pub(crate) rounds: Option<u32>,
    pub(crate) only: Vec<String>,
    pub(crate) scenarios: Vec<String>,
    /// Command line of another load generator.
    pub(crate) generator: Vec<String>,
}

/// Returns the command with all its flags.
pub(crate) fn command() -> Command {
    let names = |name: &'static str, what: &'static str| {
        flag(name).value_name("NAMES").value_delimiter(',').action(ArgAction::Append).help(what)
    };
    let path = |name: &'static str| flag(name).value_parser(PathBufValueParser::new());
    let file = Arg::new("file").value_name("FILE").value_parser(PathBufValueParser::new());
    Command::new("contest")
        .about("Measure servers side by side, as a file says, and leave a page about it")
        .override_usage(
            "gustnado contest [OPTIONS] FILE.toml\n       gustnado contest --compare OLD NEW",
        )
        .after_help("docs/contest.md has the keys of a file, the method, and how to read a report.")
        .arg(file.help("The contest, such as contests/c10k.toml"))
        .arg(path("output").value_name("DIR").help("The folder that gets everything"))
        .arg(switch("check", "Send each contender ten requests, to prove the set-up"))
        .arg(switch("quick", "One round of a second for each scenario: a look, no measurement"))
        .arg(switch("continue", "Go on with a contest that was broken off, from its record"))
        .arg(
            flag("rounds")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=100))
                .help("Rounds of each scenario, 1 to 100"),
        )
        .arg(names("only", "These contenders only, with commas between"))
        .arg(names("scenario", "These scenarios only; a sweep's name is all its points"))
        .arg(
            path("compare")
                .num_args(2)
                .value_names(["OLD", "NEW"])
                .help("Say what changed between two records, and whether it is more than noise"),
        )
        .arg(path("report").value_name("RECORD").help("Make the report of a record again"))
        .arg(
            path("markdown")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("-")
                .value_name("PAGE")
                .help("Print a table in Markdown, or replace the contest's section of a page"),
        )
        .arg(
            switch(
                "publish",
                "Replace it also by results of another machine or of changed sources",
            )
            .requires("markdown"),
        )
        .arg(flag("generator").hide(true).action(ArgAction::Append).allow_hyphen_values(true))
        .arg(switch("presets", "List the contenders that are known"))
        .arg(flag("preset").value_name("NAME").help("Print the file of one of them"))
        .arg(switch("keys", "Print the keys of a file, each with its default and its meaning"))
        .group(
            ArgGroup::new("what")
                .args(["file", "compare", "report", "presets", "preset", "keys"])
                .required(true),
        )
}

fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    flag(name).action(ArgAction::SetTrue).help(help)
}

/// Reads the flags.
pub(crate) fn read(flags: &ArgMatches) -> ContestSubcommand {
    let path = |name: &str| flags.get_one::<PathBuf>(name).cloned();
    let names = |name: &str| -> Vec<String> {
        flags.get_many::<String>(name).into_iter().flatten().cloned().collect()
    };
    let markdown = MarkdownOptions { page: path("markdown"), publish: flags.get_flag("publish") };
    if flags.get_flag("presets") {
        return ContestSubcommand::Presets;
    }
    if flags.get_flag("keys") {
        return ContestSubcommand::Keys;
    }
    if let Some(name) = flags.get_one::<String>("preset") {
        return ContestSubcommand::Preset(name.clone());
    }
    if let Some(record) = path("report") {
        return ContestSubcommand::Report(record, markdown);
    }
    let mut both = flags.get_many::<PathBuf>("compare").into_iter().flatten().cloned();
    if let (Some(old), Some(new)) = (both.next(), both.next()) {
        return ContestSubcommand::Compare(old, new);
    }
    ContestSubcommand::Run(Box::new(ContestOptions {
        file: path("file").expect("clap wants one of the group"),
        output: path("output"),
        check: flags.get_flag("check"),
        quick: flags.get_flag("quick"),
        goes_on: flags.get_flag("continue"),
        markdown,
        rounds: flags.get_one("rounds").copied(),
        only: names("only"),
        scenarios: names("scenario"),
        generator: names("generator"),
    }))
}

/// Returns the hidden command that starts servers of a contest.
pub(crate) fn member() -> Command {
    let words = Arg::new("words")
        .required(true)
        .num_args(1..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(value_parser!(OsString));
    let parent = Arg::new("parent").required(true).value_parser(value_parser!(i32));
    Command::new("contest-member").hide(true).arg(parent).arg(words)
}

/// Returns the parent process and the command to start.
pub(crate) fn read_member(flags: &ArgMatches) -> (i32, Vec<OsString>) {
    let parent = flags.get_one("parent").copied().unwrap_or_default();
    (parent, flags.get_many("words").into_iter().flatten().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<ContestSubcommand, clap::Error> {
        let words = std::iter::once("contest").chain(words.iter().copied());
        command().try_get_matches_from(words).map(|flags| read(&flags))
    }

    #[test]
    fn a_file_can_be_narrowed() {
        let found = options(&["c.toml", "--only", "a,b", "--rounds=5", "--check", "--output", "o"]);
        let ContestSubcommand::Run(options) = found.expect("right") else { panic!("not run") };
        assert_eq!(options.only, ["a", "b"]);
        assert_eq!((options.rounds, options.check, options.quick), (Some(5), true, false));
        assert_eq!(options.output, Some("o".into()));
    }

    #[test]
    fn the_other_things_need_no_file() {
        assert_eq!(options(&["--presets"]).expect("right"), ContestSubcommand::Presets);
        let both = options(&["--compare", "a", "b"]).expect("right");
        assert_eq!(both, ContestSubcommand::Compare("a".into(), "b".into()));
        assert_eq!(
            options(&["--preset", "nginx"]).expect("right"),
            ContestSubcommand::Preset("nginx".into())
        );
        let page = |words: &[&str]| match options(words).expect("right") {
            ContestSubcommand::Report(_, markdown) => (markdown.page, markdown.publish),
            _ => panic!("no report"),
        };
        assert_eq!(page(&["--report", "r"]), (None, false));
        assert_eq!(page(&["--report", "r", "--markdown"]), (Some("-".into()), false));
        let words = ["--report", "r", "--markdown=p.md", "--publish"];
        assert_eq!(page(&words), (Some("p.md".into()), true));
        assert!(options(&["--report", "r", "--publish"]).is_err());
        assert!(options(&[]).is_err());
        assert!(options(&["c.toml", "--rounds", "0"]).is_err());
    }

    #[test]
    fn a_member_keeps_all_words_of_its_command() {
        let words = ["contest-member", "7", "nginx", "-g", "daemon off;", "--", "-x"];
        let flags = member().try_get_matches_from(words).expect("right");
        let (parent, command) = read_member(&flags);
        assert_eq!((parent, command), (7, words[2..].iter().map(OsString::from).collect()));
    }
}
