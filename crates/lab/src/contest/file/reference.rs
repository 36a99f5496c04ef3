//! The reference of all keys, written from their declarations. `docs/contest.md` holds it.

use super::declared::{CONTENDER, CONTEST, PAGE, REACH, SCENARIO};
use super::keys::rows;

/// Returns the part of `docs/contest.md` with every key of a file.
pub fn reference() -> String {
    let sections = [
        ("### The file", CONTEST_TEXT, rows(CONTEST)),
        ("### `[page]`: the content", "One of these:", rows(PAGE)),
        ("### `[[contender]]`: the servers", CONTENDER_TEXT, rows(CONTENDER)),
        ("### `[[scenario]]`: the load", SCENARIO_TEXT, rows(SCENARIO)),
        ("### `reach`: figures to reach", REACH_TEXT, rows(REACH)),
    ];
    let text = |(head, text, rows): &(&str, &str, String)| format!("{head}\n\n{text}\n\n{rows}");
    sections.iter().map(text).collect::<Vec<_>>().join("\n")
}

const CONTEST_TEXT: &str = "\
Lengths of time are written `\"1.5s\"`, `\"200ms\"`, `\"30m\"`, `\"2h\"`, or as a number of
seconds. Counts may be written `\"10k\"` or `\"1.5m\"` too.";

const CONTENDER_TEXT: &str = "\
`gustnado contest --presets` lists the known contenders, and `gustnado contest --preset nginx-tuned`
prints one: each is such a table, and says where its settings are from.";

const SCENARIO_TEXT: &str = "A list of connections makes a sweep.";

const REACH_TEXT: &str = "\
`reach = { to = \"null\", cpu = 1.05 }` in a scenario, or a list of such tables. Each is judged when
the contest is over: a ratio is the geometric mean of the ratios within each round, an absolute
figure the median, and a count the least of all rounds. A figure that is missed, or not measured,
makes the exit code 1. `--quick` and `--check` judge nothing.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_every_key_as_it_is_declared() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/contest.md");
        let page = std::fs::read_to_string(path).expect("the page is in the source");
        let told = "docs/contest.md is out of date: put the output of `gustnado contest --keys` \
                    between its two marks";
        assert!(page.contains(&reference()), "{told}");
    }
}
