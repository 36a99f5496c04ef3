//! The flags of `gustnado compress`.

use std::path::PathBuf;

use clap::builder::OsStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use gustnado_compress::COMPRESSIBLE;
use gustnado_http::content_coding::ContentCoding;
use gustnado_http::media_type::is_pattern;

use crate::usage_error::UsageError;

/// What `gustnado compress` does.
#[derive(Debug)]
pub(crate) struct CompressOptions {
    pub(crate) folder: PathBuf,
    /// In the order in which they are made.
    pub(crate) codings: Vec<ContentCoding>,
    /// Media types of the files.
    pub(crate) types: Vec<String>,
    /// Report only.
    pub(crate) dry_run: bool,
    /// Replace siblings that other programs have written.
    pub(crate) overwrite: bool,
    pub(crate) quiet: bool,
}

/// The codings that this build has an encoder of.
const CODINGS: &[ContentCoding] = &[
    #[cfg(feature = "brotli")]
    ContentCoding::Brotli,
    ContentCoding::Zstd,
    ContentCoding::Gzip,
];

/// Returns the ending of siblings with a coding, without the dot.
pub(super) fn ending(coding: ContentCoding) -> &'static str {
    match coding {
        ContentCoding::Brotli => "br",
        ContentCoding::Zstd => "zst",
        _ => "gz",
    }
}

/// Returns the subcommand with its flags.
pub(crate) fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let list = |name: &'static str| Arg::new(name).long(name).value_name("LIST");
    Command::new("compress")
        .about("Write compressed siblings of a folder's files, for --precompressed")
        .long_about(
            "Write FILE.br (Brotli, quality 11), FILE.zst (Zstandard, level 19) and FILE.gz (gzip, \
             level 12 of libdeflate) beside each file of a folder that becomes smaller, and again \
             only when the file has changed. Hidden files and symbolic links are left out, and \
             siblings that this command did not write are left alone: .gustnado-compress in the \
             folder lists those that it wrote.",
        )
        .arg(
            Arg::new("folder")
                .value_name("DIR")
                .required(true)
                .value_parser(OsStringValueParser::new())
                .help("The folder"),
        )
        .arg(
            list("codings")
                .default_value(if cfg!(feature = "brotli") { "br,zst,gz" } else { "zst,gz" })
                .help("What to write, with commas between them"),
        )
        .arg(
            list("types")
                .help("Media types of the files [text, JSON, XML, WebAssembly, SVG, fonts, …]"),
        )
        .arg(switch("dry-run", "Compress, report, and write nothing"))
        .arg(switch("overwrite", "Replace siblings that this command did not write, too"))
        .arg(switch("quiet", "Print errors only"))
}

/// Reads the flags.
///
/// # Errors
/// The first mistake, in one line.
pub(crate) fn read(flags: &ArgMatches) -> Result<CompressOptions, UsageError> {
    let text = |name| flags.get_one::<String>(name).map(String::as_str);
    let folder = flags.get_one::<std::ffi::OsString>("folder").cloned().unwrap_or_default();
    let mut codings = Vec::new();
    for name in words(text("codings").unwrap_or_default()) {
        let coding = CODINGS.iter().find(|coding| ending(**coding) == name);
        codings.push(*coding.ok_or_else(|| unknown_coding(name))?);
    }
    codings.dedup();
    let types = text("types").unwrap_or(COMPRESSIBLE);
    if let Some(wrong) = words(types).find(|pattern| !is_pattern(pattern)) {
        return Err(UsageError::of_usage(format!(
            "--types: expected a media type such as text/* or application/json, found {wrong:?}"
        )));
    }
    Ok(CompressOptions {
        folder: folder.into(),
        codings,
        types: words(types).map(str::to_owned).collect(),
        dry_run: flags.get_flag("dry-run"),
        overwrite: flags.get_flag("overwrite"),
        quiet: flags.get_flag("quiet"),
    })
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn unknown_coding(name: &str) -> UsageError {
    let known: Vec<&str> = CODINGS.iter().map(|coding| ending(*coding)).collect();
    let known = known.join(", ");
    let remedy = match name {
        "br" => "; this build has no encoder of Brotli: build it with the feature brotli",
        _ => "",
    };
    UsageError::of_usage(format!("--codings: expected some of {known}, found {name:?}{remedy}"))
}
