//! Type names: each is declared once in the whole code base, so that a name means one thing.

use std::collections::BTreeMap;
use std::path::Path;

use crate::modules::Module;

/// Names that may be declared more than once.
// Without the feature `tls` others of the same name stand for them.
pub(crate) const DECLARED_TWICE: &[&str] = &[
    "AcceptError",
    "AcmeChallenges",
    "CertificateKeeper",
    "KeeperHandle",
    "TlsAcceptor",
    "TlsInfo",
];

/// Returns where each name of a type is declared that is declared more than once.
///
/// - `crates`: the root module of each crate, by the crate's name.
pub(crate) fn declared_twice<'a>(
    crates: impl IntoIterator<Item = (&'a str, &'a Module)>,
) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, module) in crates {
        for (place, of_type) in module.types() {
            found
                .entry(of_type)
                .or_default()
                .push([&[name.to_owned()], &*place].concat().join("::"));
        }
    }
    found.retain(|_, places| places.len() > 1);
    found
}

/// Returns a line for each name that is missing in a list of exceptions, and for each that need not
/// stand there any more.
pub(crate) fn problems(found: &BTreeMap<String, Vec<String>>, allowed: &[&str]) -> Vec<String> {
    let added = found.iter().filter(|(name, _)| !allowed.contains(&name.as_str()));
    let mut problems: Vec<String> = added
        .map(|(name, places)| {
            let places = places.join(", ");
            format!("{name}: declared in {places}: name each type after what it is")
        })
        .collect();
    let gone = allowed.iter().filter(|name| !found.contains_key(**name));
    problems.extend(gone.map(|name| {
        format!("{name}: declared once: take it out of DECLARED_TWICE in tidy/types.rs")
    }));
    problems
}

#[test]
fn a_type_that_is_declared_twice_is_found() {
    let read = |text: &str| {
        let parsed = syn::parse_file(text).expect("it is Rust");
        Module::of_items(&parsed.items, Path::new("."))
    };
    let one = read(
        "struct A; enum B {} fn f() {} mod c { pub trait A { type D; } }
        #[cfg(test)] mod tests { struct B; } #[cfg(test)] enum E {}",
    );
    let other = read("type E = u8; impl X for E { type D = u8; } fn g() { union F { f: u8 } }");
    let found = declared_twice([("one", &one), ("other", &other)]);
    let expected = vec!["one".to_owned(), "one::c".to_owned()];
    assert_eq!(found, BTreeMap::from([("A".to_owned(), expected)]));
    assert_eq!(problems(&found, &["A"]), Vec::<String>::new());
    assert_eq!(
        problems(&found, &["G"]),
        [
            "A: declared in one, one::c: name each type after what it is",
            "G: declared once: take it out of DECLARED_TWICE in tidy/types.rs",
        ]
    );
}
