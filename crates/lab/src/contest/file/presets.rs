//! Preset contenders, one file each in `crates/lab/presets`.

use std::fmt::Write;

use super::ContenderSpec;

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// The name of each preset, and the text of its file.
        const ALL: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../presets/", $name, ".toml")))),+];
    };
}

presets![
    "gustnado",
    "gustnado-epoll",
    "gustnado-uring",
    "null",
    "null-uring",
    "nginx",
    "nginx-tuned",
    "apache",
    "apache-tuned",
    "lighttpd",
    "lighttpd-tuned",
    "h2o",
    "h2o-tuned",
    "caddy",
    "caddy-tuned",
    "hyper",
    "node",
    "node-tuned",
    "julia",
    "python",
    "go",
    "go-tuned",
    "java",
];

/// Sources in files of their own, by the text that stands for them in a preset.
const SOURCES: &[(&str, &str)] = &[("@null.c", include_str!("../../../presets/null.c"))];

/// Returns the names of all presets.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// Returns the text of a preset's file.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns the contender of a preset; its name is the preset's.
pub(super) fn find(name: &str) -> Option<ContenderSpec> {
    let preset = super::parse_preset(name, text(name)?);
    let mut contender = preset.expect("a test reads every preset");
    name.clone_into(&mut contender.name);
    for text in contender.files.values_mut() {
        if let Some((_, source)) = SOURCES.iter().find(|(word, _)| *word == text.as_str()) {
            (*source).clone_into(text);
        }
    }
    Some(contender)
}

/// Returns a line for each preset: name, tuning, and description.
pub fn list() -> String {
    let mut page = String::new();
    for name in names() {
        let Some(preset) = find(name) else { continue };
        let (tuning, about) = (&preset.tuning, &preset.about);
        let _ = writeln!(page, "{name:16} {tuning:8} {about}");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_read_and_says_all_that_a_row_needs() {
        for name in names() {
            let preset = find(name).expect("it is in the list");
            assert!(!preset.about.is_empty(), "{name}");
            assert!(["tuned", "untuned"].contains(&&*preset.tuning), "{name}");
            assert!(!preset.command.is_empty(), "{name}");
            assert!(!preset.version.is_empty(), "{name}");
            assert!(!preset.install.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_source_in_a_file_of_its_own_is_filled_in() {
        let null = find("null").expect("it is in the list");
        assert!(null.files["null.c"].contains("int main"), "{:?}", null.files);
    }

    #[test]
    fn the_list_has_a_line_for_each() {
        assert_eq!(list().lines().count(), names().len());
        assert!(list().lines().all(|line| line.chars().count() <= 100), "{}", list());
    }
}
