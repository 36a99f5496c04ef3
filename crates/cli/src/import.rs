//! `gustnado import`: makes a configuration file of nginx's.

use crate::exit;
use crate::output::{Console, page};
use crate::written::write_new;
use gustnado::site::import_nginx;
use std::path::{Path, PathBuf};

/// Options of `gustnado import`.
#[derive(Debug)]
pub(crate) struct ImportOptions {
    pub(crate) from: PathBuf,
    /// `None` is standard output.
    pub(crate) to: Option<PathBuf>,
    /// Whether a file that is there may be replaced.
    pub(crate) force: bool,
}

/// Imports a configuration. What could not be taken over goes to standard error.
pub(crate) fn run(options: &ImportOptions) -> u8 {
    let output = Console::new(false);
    let import = match import_nginx(&options.from) {
        Ok(import) => import,
        Err(why) => {
            output.error(&why);
            return exit::CONFIG;
        }
    };
    for left in &import.left {
        output.say(&left.to_string());
    }
    let Some(to) = &options.to else { return page(&import.text) };
    if let Err(why) = write_new(to, &import.text, options.force) {
        output.error(&why);
        return exit::FAILED;
    }
    output.say(&summary(to, import.left.len()));
    exit::CLEAN
}

fn summary(to: &Path, left: usize) -> String {
    let shown = to.display();
    match left {
        0 => format!("{shown}: everything was taken over; `gustnado check {shown}` reads it"),
        _ => format!(
            "{shown}: {left} directives could not be taken over as they are (above); what they \
             stand in is closed where it matters; `gustnado check {shown}` reads it"
        ),
    }
}
