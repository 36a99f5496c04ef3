//! The book: its list of pages, and links that lead to a heading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use crate::tree::{Source, links, sources};

const SUMMARY: &str = "docs/SUMMARY.md";
const README_LINES_MAX: usize = 150;

/// What must be said in one place alone, for it stops being true one day.
const SAID_ONCE: &str = "until 0.1.0 is on the registry";

/// Lines of prose: without blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The anchors of a page, as GitHub and mdBook make them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// The path of a link's target from the root of the code base; the page itself for a bare anchor.
fn target(page: &str, link: &str) -> String {
    if link.is_empty() {
        return page.to_owned();
    }
    let joined = Path::new(page).parent().unwrap_or(Path::new("")).join(link);
    let mut parts = Vec::new();
    for part in joined.components() {
        match part {
            Component::ParentDir => _ = parts.pop(),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// Links of `page` to a heading that is not there.
fn dead_anchors(page: &Source, anchors_of: &BTreeMap<&str, BTreeSet<String>>) -> Vec<String> {
    let text: String = prose(&page.text).flat_map(|line| [line, "\n"]).collect();
    let mut dead = Vec::new();
    for link in links(&text).filter(|link| !link.contains("://")) {
        let Some((path, anchor)) = link.split_once('#') else { continue };
        let there = anchors_of.get(&*target(&page.path, path));
        if there.is_some_and(|anchors| !anchors.contains(anchor)) {
            dead.push(format!("{}: {link}: no such heading: correct it", page.path));
        }
    }
    dead
}

fn documents() -> Vec<Source> {
    sources().into_iter().filter(Source::is_document).collect()
}

#[test]
fn links_lead_to_headings() {
    let documents = documents();
    let anchors_of: BTreeMap<&str, BTreeSet<String>> =
        documents.iter().map(|page| (&*page.path, anchors(&page.text))).collect();
    let dead: Vec<_> = documents.iter().flat_map(|page| dead_anchors(page, &anchors_of)).collect();
    crate::report(&dead);
}

#[test]
fn every_page_is_in_the_book_once() {
    let documents = documents();
    let summary = documents.iter().find(|page| page.path == SUMMARY).expect("the list of pages");
    let listed: Vec<String> = links(&summary.text).map(|link| target(SUMMARY, link)).collect();
    let mut problems = Vec::new();
    for page in documents.iter().filter(|page| page.path.starts_with("docs/")) {
        let count = listed.iter().filter(|listed| **listed == page.path).count();
        if page.path != SUMMARY && count != 1 {
            problems.push(format!("{}: {count} times in {SUMMARY}: once is right", page.path));
        }
    }
    crate::report(&problems);
}

#[test]
fn the_readme_is_short_and_says_once_what_passes() {
    let documents = documents();
    let readme = documents.iter().find(|page| page.path == "README.md").expect("the README");
    let lines = readme.text.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines, {README_LINES_MAX} allowed");
    let places = documents.iter().filter(|page| page.text.contains(SAID_ONCE));
    let places: Vec<&str> = places.map(|page| &*page.path).collect();
    assert_eq!(places, ["docs/install.md"]);
}

#[test]
fn a_link_to_a_missing_heading_is_found() {
    let text = "# A `page`: of two words\n## Twice\n## Twice\n```sh\n# no heading\n```\n\
                [x](#a-page-of-two-words) [y](#twice-1) [z](../docs/a.md#no-heading)\n";
    let page = Source { path: "docs/a.md".to_owned(), text: text.to_owned() };
    let anchors_of = BTreeMap::from([("docs/a.md", anchors(text))]);
    let wanted = "docs/a.md: ../docs/a.md#no-heading: no such heading: correct it";
    assert_eq!(dead_anchors(&page, &anchors_of), [wanted]);
}
