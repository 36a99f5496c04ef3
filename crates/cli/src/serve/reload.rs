//! HUP: reads the configuration file again and serves by it.

use crate::arguments::ServeOptions;
use crate::output::Console;
use gustnado::{Reloaded, Running};
use std::path::Path;

/// Reads the file again. A mistake in it is printed, and nothing changes.
pub(super) fn again(
    running: &Running,
    options: Box<ServeOptions>,
    output: Console,
) -> Box<ServeOptions> {
    let Some(path) = options.file().map(Path::to_owned) else {
        output.say(
            "HUP: there is no configuration file to read again; serving goes on (start with \
             --config FILE to have one)",
        );
        return options;
    };
    let new = match options.again() {
        Ok(new) => new,
        Err(refusal) => {
            running.refuse_reload();
            refuse(&refusal.line, &path, output);
            return options;
        }
    };
    match running.reload(new.server()) {
        Ok(reloaded) => {
            new.settings.warnings.iter().for_each(|warning| output.warn(warning));
            output.say(&report(&path, &reloaded));
            new
        }
        Err(error) => {
            refuse(&new.line(&error), &path, output);
            options
        }
    }
}

fn refuse(lines: &str, path: &Path, output: Console) {
    lines.lines().for_each(|line| output.error(line));
    let path = path.display();
    output.error(&format!("HUP: {path} was not taken; what was served before is served on"));
}

/// One line: settings that changed, and those that need a restart.
fn report(path: &Path, reloaded: &Reloaded) -> String {
    let addresses = |all: &[gustnado::Endpoint]| {
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let mut parts = vec![format!("HUP: reloaded {}", path.display())];
    if !reloaded.changed.is_empty() {
        parts.push(format!("changed: {}", reloaded.changed.join(", ")));
    }
    if !reloaded.kept.is_empty() {
        parts.push(format!("needs a restart, and stays: {}", reloaded.kept.join(", ")));
    }
    if !reloaded.opened.is_empty() {
        parts.push(format!("listens on {} now", addresses(&reloaded.opened)));
    }
    if !reloaded.closed.is_empty() {
        parts.push(format!("listens on {} no more", addresses(&reloaded.closed)));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_one_line() {
        let path = Path::new("site.toml");
        assert_eq!(report(path, &Reloaded::default()), "HUP: reloaded site.toml");
        let reloaded = Reloaded {
            changed: vec!["header-timeout", "hidden"],
            kept: vec!["workers"],
            ..Reloaded::default()
        };
        assert_eq!(
            report(path, &reloaded),
            "HUP: reloaded site.toml; changed: header-timeout, hidden; needs a restart, and \
             stays: workers"
        );
    }
}
