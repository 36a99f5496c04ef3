//! The reference of all settings, written from the table. `docs/tuning.md` is its output.

use super::table::TUNABLES;
use super::tunable::{Field, SettingGroup, Tunable};
use std::fmt::Write;

const HEAD: &str = "\
# Tuning

Every setting has one name. Write it as a flag (`--header-timeout 5s`), as an environment variable
(`GUSTNADO_HEADER_TIMEOUT=5s`), as a key of a [configuration file](configuration.md)
(`header-timeout = \"5s\"`), or call its method in Rust (`Server::header_timeout`). All of them read
values alike. A flag beats the environment, the environment beats the file, and the file beats the
default. The plain variable `PORT` is honoured too, below `GUSTNADO_PORT`.

`gustnado check` prints every setting in effect and where it came from. `gustnado doctor` looks at
the machine and says what to change there. A running server takes new values of all but those marked
with a star when it gets the signal HUP.

Durations are written `500ms`, `30s`, `5m`, `2h`, `1d`, or as plain seconds. Sizes are written
`64k`, `10m`, `1g` (powers of 1,024), or as plain bytes. Switches take `true`, `false`, `yes`, `no`,
`on`, `off`, `1` and `0`; a flag alone is `true`. Where a number has a word, such as `auto`, 0 means
the same.

This page is generated: `gustnado tuning > docs/tuning.md`.
";

const OF_ROUTES: &str = "\
A site and a route may have values of their own: these are keys of `[[site]]` and `[[route]]`, too,
and in Rust fields of the settings that `Routes::tune` and `Route::tune` change.";

/// Returns the whole of `docs/tuning.md`.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for group in SettingGroup::ALL {
        let rows = TUNABLES.iter().filter(|tunable| tunable.group == group).map(row);
        let heading = group.heading();
        let rows: String = rows.collect();
        page.push_str("\n## ");
        page.push_str(heading);
        if TUNABLES.iter().any(|tunable| tunable.group == group && tunable.is_of_route()) {
            page.push_str("\n\n");
            page.push_str(OF_ROUTES);
        }
        page.push_str("\n\n| flag | variable | key | method | default | takes | meaning |\n");
        page.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
        page.push_str(&rows);
    }
    page
}

fn row(tunable: &Tunable) -> String {
    let default = if tunable.default.is_empty() { "none" } else { tunable.default };
    let mut row = String::new();
    write!(
        row,
        "| `{}` | `{}` | `{}`{} | `{}` | `{default}` | {} | {} |",
        tunable.flag(),
        tunable.variable(),
        tunable.name,
        if tunable.needs_restart() { " \\*" } else { "" },
        tunable.method(),
        takes(tunable),
        tunable.doc
    )
    .expect("writing to a string cannot fail");
    row.push('\n');
    row
}

/// Returns what a setting takes, shorter than in messages: the page's head explains the forms.
fn takes(tunable: &Tunable) -> String {
    match &tunable.field {
        Field::Number { unit, min, max, zero, .. } => {
            let word = zero.map(|word| format!(", or `{word}`")).unwrap_or_default();
            format!("{} to {}{word}", unit.format(*min), unit.format(*max))
        }
        Field::Choice { names, .. } => {
            let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            quoted.join(", ")
        }
        Field::Text { .. } | Field::List { .. } | Field::Path { .. } | Field::Switch { .. } => {
            tunable.takes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_one_row() {
        let page = reference();
        for tunable in TUNABLES {
            let cell = format!("| `{}` |", tunable.variable());
            assert_eq!(page.matches(&cell).count(), 1, "{cell}");
        }
    }
}
