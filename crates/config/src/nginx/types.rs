//! Types of files: whether what a browser runs here is what nginx lets it run.

use std::collections::BTreeMap;

use super::syntax::Directive;

/// Endings of files that a browser runs scripts of, each with the type that it has here.
const ACTIVE: [(&str, &str); 6] = [
    ("html", "text/html"),
    ("htm", "text/html"),
    ("shtml", "text/html"),
    ("xhtml", "application/xhtml+xml"),
    ("svg", "image/svg+xml"),
    ("xml", "text/xml"),
];

/// What `types` says of those endings.
#[derive(Clone, Debug, Default)]
pub(super) struct NginxTypes {
    /// Types by endings; `None`: no table is given, and so they are the usual ones.
    table: Option<BTreeMap<&'static str, String>>,
    /// The last table of the scope itself; otherwise the scope's first one replaces what it
    /// inherits, as in nginx.
    own: Option<Directive>,
}

impl NginxTypes {
    /// Returns those of a location in this scope.
    pub(super) fn inner(&self) -> Self {
        Self { own: None, ..self.clone() }
    }

    /// Returns the last table of the scope itself.
    pub(super) fn own(&self) -> Option<&Directive> {
        self.own.as_ref()
    }

    /// Takes a table, or one that is known without reading it: `mime.types`.
    pub(super) fn take(&mut self, one: &Directive) {
        if self.own.replace(Directive { block: None, ..one.clone() }).is_none() {
            self.table = None;
        }
        let table = self.table.get_or_insert_default();
        let Some(kinds) = &one.block else {
            table.extend(ACTIVE.map(|(ending, kind)| (ending, kind.to_owned())));
            return;
        };
        for kind in kinds {
            // A file that is not read may name them all.
            let is_unknown = kind.name == "include";
            for (ending, _) in ACTIVE {
                let is_named = kind.args.iter().any(|arg| arg.eq_ignore_ascii_case(ending));
                if is_named || is_unknown {
                    table.insert(ending, kind.name.clone());
                }
            }
        }
    }

    /// Returns whether files are run here that nginx shows as something else.
    ///
    /// - `usual`: the type of endings that no table has.
    /// - `is_for`: whether the scope may be for files with an ending.
    pub(super) fn runs_more(&self, usual: Option<&str>, is_for: impl Fn(&str) -> bool) -> bool {
        let Some(table) = &self.table else { return false };
        ACTIVE.iter().filter(|(ending, _)| is_for(ending)).any(|(ending, here)| {
            let kind = table.get(ending).map(String::as_str).or(usual).unwrap_or("text/plain");
            !is_as_active(kind, here)
        })
    }
}

/// Returns whether a browser runs at least what it runs of files of the type `here`.
fn is_as_active(kind: &str, here: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_xml = |kind: &str| kind.ends_with("/xml") || kind.ends_with("+xml");
    kind == "text/html" || kind == here || is_xml(&kind) && is_xml(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_as_active_as_all_and_an_image_of_xml_as_xml() {
        for (kind, here, expected) in [
            ("text/html", "text/html", true),
            ("Text/HTML; charset=utf-8", "text/html", true),
            ("text/html", "image/svg+xml", true),
            ("application/xml", "image/svg+xml", true),
            ("image/svg+xml", "text/html", false),
            ("application/xhtml+xml", "text/html", false),
            ("text/plain", "image/svg+xml", false),
            ("application/octet-stream", "text/xml", false),
            ("xyz", "text/html", false),
        ] {
            assert_eq!(is_as_active(kind, here), expected, "{kind} {here}");
        }
    }
}
