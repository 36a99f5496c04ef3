//! `gustnado init`: writes a configuration file with comments, to begin with.

use crate::exit;
use crate::output::Console;
use crate::written::write_new;
use std::path::{Path, PathBuf};

/// Options of `gustnado init`.
#[derive(Debug)]
pub(crate) struct InitOptions {
    pub(crate) template: InitTemplate,
    pub(crate) file: PathBuf,
    /// Whether a file that is there may be replaced.
    pub(crate) force: bool,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitTemplate {
    Static,
    Spa,
    Python,
    BehindProxy,
}

impl InitTemplate {
    /// The names of all of them.
    pub(crate) const NAMES: [&str; 4] = ["static", "spa", "python", "behind-proxy"];

    /// Returns the template of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let all = [Self::Static, Self::Spa, Self::Python, Self::BehindProxy];
        Self::NAMES.iter().position(|known| *known == name).map(|place| all[place])
    }

    fn text(self) -> &'static str {
        match self {
            Self::Static => include_str!("init/static.toml"),
            Self::Spa => include_str!("init/spa.toml"),
            Self::Python => include_str!("init/python.toml"),
            Self::BehindProxy => include_str!("init/behind-proxy.toml"),
        }
    }

    /// Returns the folder that the file serves.
    fn folder(self) -> &'static str {
        match self {
            Self::Static | Self::BehindProxy => "public",
            Self::Spa => "dist",
            Self::Python => "static",
        }
    }
}

/// The first page of a folder that was not there.
const PAGE: &str = "<!doctype html>\n<title>It works</title>\n<h1>It works</h1>\n";

/// Writes the file, and the folder that it serves if that is not there.
pub(crate) fn run(options: &InitOptions) -> u8 {
    let output = Console::new(false);
    let (file, text) = (&options.file, options.template.text());
    if let Err(why) = write_new(file, text, options.force) {
        output.error(&why);
        return exit::FAILED;
    }
    let folder = file.parent().unwrap_or(Path::new("")).join(options.template.folder());
    match make(&folder) {
        Ok(is_new) => {
            let shown = file.display();
            let with = if is_new { format!(" and {}", folder.display()) } else { String::new() };
            output.say(&format!("wrote {shown}{with}; `gustnado serve {shown}` serves it"));
            exit::CLEAN
        }
        Err(error) => {
            let shown = folder.display();
            output.error(&format!("{shown}: cannot be created: {error}; create the folder"));
            exit::FAILED
        }
    }
}

/// Creates a folder with a page in it; returns whether it was not there.
fn make(folder: &Path) -> std::io::Result<bool> {
    if folder.exists() {
        return Ok(false);
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("index.html"), PAGE)?;
    Ok(true)
}
