//! Suggests the atom that an unknown one was probably meant to be.

use super::proxy_atom::ProxyAtom;
use super::tls_atom::TlsAtom;
use gustnado_config::nearest;

/// Names of atoms in other programs.
const WORDS: [(&str, &str); 22] = [
    ("address", "h"),
    ("remote_addr", "h"),
    ("remote_address", "h"),
    ("user", "u"),
    ("remote_user", "u"),
    ("time", "t"),
    ("date", "t"),
    ("request", "r"),
    ("method", "m"),
    ("path", "U"),
    ("url", "U"),
    ("query", "q"),
    ("query_string", "q"),
    ("protocol", "H"),
    ("status", "s"),
    ("bytes", "B"),
    ("length", "B"),
    ("referer", "f"),
    ("referrer", "f"),
    ("user_agent", "a"),
    ("duration", "L"),
    ("pid", "p"),
];
/// The letters of all atoms.
pub(super) const LETTERS: &str = "hlutrmUqHsBbfaTMDLp";

/// Returns how many bytes of a format belong to the unknown atom at its start.
pub(super) fn extent(rest: &str) -> usize {
    let stops = |one: char| one.is_whitespace() || matches!(one, '"' | '%' | '|' | ',' | '[');
    let behind = rest.get(1..).unwrap_or_default();
    if let Some((inside, _)) = behind.strip_prefix('(').and_then(|rest| rest.split_once(")s"))
        && !inside.contains('%')
    {
        return "%()s".len() + inside.len();
    }
    1 + behind.find(stops).unwrap_or(behind.len())
}

/// Returns the atom that is nearest to the found text, if one is near.
pub(super) fn atom(found: &str) -> Option<String> {
    if let Some((before, behind)) = found.split_once('}')
        && let Some((_, name)) = before.split_once('{')
        && !name.is_empty()
    {
        let kind = behind.chars().find(|kind| matches!(kind, 'i' | 'o' | 'e' | 'x'));
        let kind = kind.unwrap_or('i');
        if kind == 'x' && !of_connections().any(|known| known.eq_ignore_ascii_case(name)) {
            return nearest(name, of_connections()).map(of_connection);
        }
        return Some(format!("%({{{name}}}{kind})s"));
    }
    let inside = found.trim_start_matches('%').trim_start_matches(['(', '>', '<']);
    let name: String =
        inside.chars().take_while(|one| one.is_ascii_alphanumeric() || *one == '_').collect();
    let letter = |exact: bool| {
        let mut letters = LETTERS.chars();
        letters.find(|letter| {
            name.len() == 1
                && (name.starts_with(*letter)
                    || !exact && name.eq_ignore_ascii_case(letter.encode_utf8(&mut [0; 4])))
        })
    };
    if let Some(letter) = letter(true).or_else(|| letter(false)) {
        return Some(format!("%({letter})s"));
    }
    let word = nearest(&name, WORDS.iter().map(|(word, _)| *word).chain(of_connections()))?;
    let letter = WORDS.iter().find(|(other, _)| *other == word).map(|(_, letter)| *letter);
    Some(letter.map_or_else(|| of_connection(word), |letter| format!("%({letter})s")))
}

/// Returns the names of all properties of connections.
fn of_connections() -> impl Iterator<Item = &'static str> {
    TlsAtom::names().chain(ProxyAtom::names())
}

fn of_connection(name: &str) -> String {
    format!("%({{{name}}}x)s")
}
