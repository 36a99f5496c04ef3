//! `Cache-Control` of a folder's files: who may keep them, and for how long without asking.
//!
//! A page has to be asked for each time, or browsers would not see a deployment. A file whose name
//! holds a hash of its content never changes, and may be kept for a year. A name alone does not
//! tell: so the latter is only for files beneath certain folders, and only for hashes that are no
//! words.

use std::borrow::Cow;

use gustnado_config::{CacheControl, RouteSettings, path_matches};

use super::content_type::ContentType;
use super::hashed_name::{has_hash, may_have_hash};

/// The value for what never changes.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// The same where not every client may have it: `public` would let a cache that clients share keep
/// what was sent for a password (RFC 9111 §3.5), and give it to those without one.
const IMMUTABLE_PRIVATE: &str = "private, max-age=31536000, immutable";
/// The value for what has to be compared each time; with a tag that costs no content.
const NO_CACHE: &str = "no-cache";

/// A rule that a file's `Cache-Control` comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedRule<'s> {
    /// The field's value.
    pub value: &'s str,
    /// The rule, for people: `pages`, or the pattern of one in the configuration file.
    pub name: Cow<'s, str>,
    /// It is a rule of the configuration file, which counts more than a field that is set for all
    /// responses.
    pub is_own: bool,
}

impl<'s> AppliedRule<'s> {
    fn built_in(value: &'static str, name: impl Into<Cow<'s, str>>) -> Self {
        Self { value, name: name.into(), is_own: false }
    }
}

/// Returns the rule for a file, if there is one.
///
/// - `relative`: the decoded path of the file below its folder, without a slash before it: for `/`
///   that is `index.html`.
pub fn cache_rule<'s>(settings: &'s RouteSettings, relative: &[u8]) -> Option<AppliedRule<'s>> {
    let path = [b"/", relative].concat();
    let own = settings.cache.iter().find(|rule| path_matches(&rule.path, &path));
    if let Some(own) = own {
        let name = format!("cache, path {}", own.path).into();
        return Some(AppliedRule { value: &own.value, name, is_own: true });
    }
    if !is_on(settings) {
        return None;
    }
    let name = memchr::memrchr(b'/', relative).map_or(relative, |at| &relative[at + 1..]);
    let immutable = ImmutableFolders(&settings.immutable_folders);
    Some(if ContentType::of(name).is_html() {
        AppliedRule::built_in(NO_CACHE, "pages")
    } else if has_hash(name)
        && let Some(folder) = immutable.around(relative)
    {
        let name = format!("hashed names beneath {folder}");
        if settings.access.restricts_clients() {
            AppliedRule::built_in(IMMUTABLE_PRIVATE, name + ", not for all clients")
        } else {
            AppliedRule::built_in(IMMUTABLE, name)
        }
    } else {
        AppliedRule::built_in(NO_CACHE, "other files")
    })
}

/// Returns whether each file of a folder has a `Cache-Control` by its kind.
pub(super) fn is_on(settings: &RouteSettings) -> bool {
    match settings.cache_control {
        CacheControl::Auto => !settings.spa.is_empty(),
        CacheControl::On => true,
        CacheControl::Off => false,
    }
}

/// The folders beneath which a hashed name never changes its content.
pub(super) struct ImmutableFolders<'s>(pub(super) &'s [String]);

impl<'s> ImmutableFolders<'s> {
    /// Returns the folder that a path lies beneath.
    fn around(&self, relative: &[u8]) -> Option<&'s str> {
        let lies_beneath = |folder: &&String| rest_beneath(folder, relative).is_some();
        self.0.iter().find(lies_beneath).map(String::as_str)
    }

    /// Returns whether a path lies beneath one of them.
    pub(super) fn contain(&self, relative: &[u8]) -> bool {
        self.around(relative).is_some()
    }

    /// Returns whether a file of a former release is still found: it lies beneath one of them, and
    /// its name, or that of a folder in between, may hold a hash.
    pub(super) fn keep(&self, relative: &[u8]) -> bool {
        let rest = self.0.iter().find_map(|folder| rest_beneath(folder, relative));
        rest.is_some_and(|rest| rest.split(|byte| *byte == b'/').any(may_have_hash))
    }
}

fn rest_beneath<'p>(folder: &str, relative: &'p [u8]) -> Option<&'p [u8]> {
    let folder = folder.trim_matches('/').as_bytes();
    relative.strip_prefix(folder)?.strip_prefix(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustnado_config::CacheRule;

    fn told(settings: &RouteSettings, path: &str) -> Option<(String, String)> {
        let rule = cache_rule(settings, path.as_bytes())?;
        Some((rule.value.to_owned(), rule.name.into_owned()))
    }

    fn settings(change: impl FnOnce(&mut RouteSettings)) -> RouteSettings {
        let mut settings = RouteSettings::default();
        change(&mut settings);
        settings
    }

    #[test]
    fn each_kind_of_file_has_its_rule() {
        let on = settings(|settings| settings.cache_control = CacheControl::On);
        for (path, value, name) in [
            ("index.html", NO_CACHE, "pages"),
            ("docs/a.htm", NO_CACHE, "pages"),
            ("assets/page-9f2c1b7a.html", NO_CACHE, "pages"),
            ("assets/main.9f2c1b7a.js", IMMUTABLE, "hashed names beneath assets"),
            ("static/js/main.9f2c1b7a.chunk.js", IMMUTABLE, "hashed names beneath static"),
            (
                "_next/static/chunks/app-3b1a2c4d5e6f7081.js",
                IMMUTABLE,
                "hashed names beneath _next/static",
            ),
            ("_app/immutable/chunks/BhK3xz1c.js", IMMUTABLE, "hashed names beneath _app/immutable"),
            ("build/q-D3xkT9aB.js", IMMUTABLE, "hashed names beneath build"),
            ("main.9f2c1b7a.js", NO_CACHE, "other files"),
            ("my/assets/main.9f2c1b7a.js", NO_CACHE, "other files"),
            ("assets9/main.9f2c1b7a.js", NO_CACHE, "other files"),
            ("assets/logo-vertical.svg", NO_CACHE, "other files"),
            ("assets/my-document.pdf", NO_CACHE, "other files"),
            ("assets/report.20240131.pdf", NO_CACHE, "other files"),
            ("robots.txt", NO_CACHE, "other files"),
        ] {
            assert_eq!(told(&on, path), Some((value.into(), name.into())), "{path}");
        }
    }

    #[test]
    fn what_not_all_clients_may_have_is_for_no_shared_cache() {
        type Restrict = fn(&mut RouteSettings);
        let restrictions: [(Restrict, bool); 7] = [
            (|_| {}, false),
            (|settings| settings.access.basic_auth = Some("users".into()), true),
            (|settings| settings.access.signed_urls = Some("keys".into()), true),
            (|settings| settings.access.allow = vec!["10.0.0.0/8".into()], true),
            (|settings| settings.access.deny = vec!["10.0.0.0/8".into()], true),
            (|settings| settings.access.allow = vec!["*".into()], false),
            (|settings| settings.access.rate_limit = "1/s".into(), false),
        ];
        for (restrict, is_private) in restrictions {
            let on = settings(|settings| {
                settings.cache_control = CacheControl::On;
                restrict(settings);
            });
            let expected = if is_private {
                (IMMUTABLE_PRIVATE, "hashed names beneath assets, not for all clients")
            } else {
                (IMMUTABLE, "hashed names beneath assets")
            };
            let found = told(&on, "assets/main.9f2c1b7a.js");
            assert_eq!(found, Some((expected.0.into(), expected.1.into())));
            assert_eq!(told(&on, "index.html"), Some((NO_CACHE.into(), "pages".into())));
        }
    }

    #[test]
    fn it_is_on_for_applications_of_one_page_and_where_that_is_asked_for() {
        for (spa, choice, expected) in [
            ("", CacheControl::Auto, false),
            ("index.html", CacheControl::Auto, true),
            ("", CacheControl::On, true),
            ("index.html", CacheControl::Off, false),
        ] {
            let settings = settings(|settings| {
                settings.spa = spa.into();
                settings.cache_control = choice;
            });
            assert_eq!(told(&settings, "a.txt").is_some(), expected, "{spa:?} {choice:?}");
        }
    }

    #[test]
    fn the_first_rule_of_the_file_that_matches_counts() {
        let rule = CacheRule::new;
        let settings = settings(|settings| {
            settings.cache = vec![
                rule("/assets/*.json", "no-store"),
                rule("/assets/**", "public, max-age=60"),
                rule("/*", "private"),
            ];
        });
        for (path, value, pattern) in [
            ("assets/a.json", "no-store", "/assets/*.json"),
            ("assets/x/a.json", "public, max-age=60", "/assets/**"),
            ("index.html", "private", "/*"),
        ] {
            let expected = (value.to_owned(), format!("cache, path {pattern}"));
            assert_eq!(told(&settings, path), Some(expected), "{path}");
        }
        assert_eq!(told(&settings, "docs/a.txt"), None, "no rule, and not on by itself");
    }

    #[test]
    fn the_folders_can_be_others() {
        let settings = settings(|settings| {
            settings.cache_control = CacheControl::On;
            settings.immutable_folders = vec!["/my/files/".into()];
        });
        let is_immutable = |path| told(&settings, path).is_some_and(|rule| rule.0 == IMMUTABLE);
        assert!(is_immutable("my/files/main.9f2c1b7a.js"));
        assert!(!is_immutable("assets/main.9f2c1b7a.js"));
        let folders = ImmutableFolders(&settings.immutable_folders);
        assert!(folders.keep(b"my/files/b1a2c3d4e5/_manifest.js"));
        assert!(!folders.keep(b"my/files/_manifest.js") && !folders.keep(b"main.9f2c1b7a.js"));
    }
}
