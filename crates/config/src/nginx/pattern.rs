//! Regular expressions of locations as patterns of paths that match at least as much: what must not
//! be served can be left out by them, and never too little of it.

/// The most patterns that an expression may become.
const PATTERNS_MAX: usize = 128;
/// Stands for any letters, slashes included.
const ANY: &str = "*";

/// Returns patterns of `*` and `?` such that every path which the expression matches is matched by
/// one of them; upper and lower case do not count.
///
/// - Returns `None` if it is not understood: then any path may match.
pub(super) fn patterns(expression: &str) -> Option<Vec<String>> {
    let mut reader = PatternReader { rest: expression, depth: 0 };
    let all = reader.alternatives()?;
    if !reader.rest.is_empty() {
        return None;
    }
    let anywhere = |mut pattern: PatternPiece| {
        if !pattern.begins {
            pattern.text.insert_str(0, ANY);
        }
        if !pattern.ends {
            pattern.text.push_str(ANY);
        }
        while pattern.text.contains("**") {
            pattern.text = pattern.text.replace("**", ANY);
        }
        pattern.text
    };
    let mut patterns: Vec<String> = all.into_iter().map(anywhere).collect();
    patterns.sort();
    patterns.dedup();
    Some(patterns)
}

/// A pattern as far as it is read.
#[derive(Clone, Debug, Default)]
struct PatternPiece {
    text: String,
    /// It begins where the path begins (`^`).
    begins: bool,
    /// It ends where the path ends (`$`).
    ends: bool,
}

impl PatternPiece {
    fn of(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Returns this pattern and another one behind it.
    fn then(&self, next: &Self) -> Self {
        // `$` before something matches nothing that has more; what follows may be left out.
        if self.ends {
            return self.clone();
        }
        // `^` behind something that may be empty.
        let begins = self.begins || next.begins && self.text.is_empty();
        Self { text: format!("{}{}", self.text, next.text), begins, ends: next.ends }
    }
}

struct PatternReader<'t> {
    rest: &'t str,
    depth: usize,
}

impl PatternReader<'_> {
    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn bump(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        letter
    }

    /// Reads `a|b|c`.
    fn alternatives(&mut self) -> Option<Vec<PatternPiece>> {
        let mut all = self.sequence()?;
        while self.take("|") {
            all.extend(self.sequence()?);
            if all.len() > PATTERNS_MAX {
                return None;
            }
        }
        Some(all)
    }

    fn sequence(&mut self) -> Option<Vec<PatternPiece>> {
        let mut all = vec![PatternPiece::default()];
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let next = self.repeated()?;
            let pairs = all.iter().flat_map(|one| next.iter().map(|next| one.then(next)));
            all = pairs.collect();
            if all.len() > PATTERNS_MAX {
                return None;
            }
        }
        Some(all)
    }

    /// Reads an atom, and how often it may be there.
    fn repeated(&mut self) -> Option<Vec<PatternPiece>> {
        let mut atom = self.atom()?;
        loop {
            if self.take("?") {
                atom.push(PatternPiece::default());
            } else if self.take("*") || self.take("+") {
                atom = vec![PatternPiece::of(ANY)];
            } else if self.rest.starts_with('{') {
                let (_, behind) = self.rest.split_once('}')?;
                self.rest = behind;
                atom = vec![PatternPiece::of(ANY)];
            } else {
                return Some(atom);
            }
        }
    }

    fn atom(&mut self) -> Option<Vec<PatternPiece>> {
        let one = match self.bump()? {
            '^' => PatternPiece { begins: true, ..PatternPiece::default() },
            '$' => PatternPiece { ends: true, ..PatternPiece::default() },
            '.' => PatternPiece::of("?"),
            '[' => {
                self.class()?;
                PatternPiece::of("?")
            }
            '(' => return self.group(),
            '\\' => self.escaped()?,
            '*' | '+' | '?' | ')' | '{' => return None,
            letter if letter.is_ascii() => PatternPiece::of(&letter.to_string()),
            // Bytes and letters differ in number.
            _ => PatternPiece::of(ANY),
        };
        Some(vec![one])
    }

    fn escaped(&mut self) -> Option<PatternPiece> {
        Some(match self.bump()? {
            'd' | 'w' | 's' | 'D' | 'W' | 'S' | 'h' | 'H' | 'v' | 'V' | 'N' => {
                PatternPiece::of("?")
            }
            'b' | 'B' => PatternPiece::default(),
            'A' => PatternPiece { begins: true, ..PatternPiece::default() },
            'z' | 'Z' => PatternPiece { ends: true, ..PatternPiece::default() },
            // References, properties, literal texts, bytes by number.
            letter if letter.is_ascii_alphanumeric() => return None,
            letter if "*?".contains(letter) => PatternPiece::of("?"),
            letter => PatternPiece::of(&letter.to_string()),
        })
    }

    /// Skips `…]`.
    fn class(&mut self) -> Option<()> {
        self.take("^");
        let mut is_first = true;
        loop {
            match self.bump()? {
                ']' if !is_first => return Some(()),
                '\\' => _ = self.bump()?,
                '[' if self.take(":") => {
                    let (_, behind) = self.rest.split_once(":]")?;
                    self.rest = behind;
                }
                _ => {}
            }
            is_first = false;
        }
    }

    fn group(&mut self) -> Option<Vec<PatternPiece>> {
        self.depth += 1;
        if self.depth > 16 {
            return None;
        }
        let mut is_assertion = false;
        if self.take("?") {
            is_assertion = ["=", "!", "<=", "<!"].iter().any(|kind| self.take(kind));
            let is_plain = is_assertion || self.take(":") || self.take(">");
            let is_named = !is_plain && (self.take("P<") || self.take("<"));
            if is_named {
                let (_, behind) = self.rest.split_once('>')?;
                self.rest = behind;
            } else if !is_plain {
                return None;
            }
        }
        let all = self.alternatives()?;
        self.depth -= 1;
        if !self.take(")") {
            return None;
        }
        // An assertion takes no letters. Without it more is matched, and never less.
        Some(if is_assertion { vec![PatternPiece::default()] } else { all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forbidden::is_matched;

    fn of(expression: &str) -> Vec<String> {
        patterns(expression).unwrap_or_else(|| vec!["none".to_owned()])
    }

    #[test]
    fn usual_expressions_are_short_patterns() {
        for (expression, expected) in [
            ("\\.php$", &["*.php"][..]),
            ("\\.php(/|$)", &["*.php", "*.php/*"]),
            ("[^/]\\.php(/|$)", &["*?.php", "*?.php/*"]),
            ("^/(wp-admin|wp-includes)/", &["/wp-admin/*", "/wp-includes/*"]),
            ("\\.(jpe?g|png)$", &["*.jpeg", "*.jpg", "*.png"]),
            ("/\\.(?!well-known).*", &["*/.*"]),
            ("^/index\\.php(/|$)", &["/index.php", "/index.php/*"]),
            ("^(.+\\.php)(/.+)$", &["*.php/*"]),
            ("", &["*"]),
            ("^/a$|^/b", &["/a", "/b*"]),
            ("\\d{2}", &["*"]),
            ("(a", &["none"]),
            ("a)", &["none"]),
            ("\\1", &["none"]),
            ("(?i)a", &["none"]),
            ("[a", &["none"]),
        ] {
            assert_eq!(of(expression), expected, "{expression}");
        }
        assert_eq!(patterns(&"(a|b)".repeat(12)), None, "too many");
    }

    #[test]
    fn what_an_expression_matches_its_patterns_match() {
        for (expression, paths) in [
            ("\\.php$", &["/a.php", "/x/y.PHP"][..]),
            ("^/user/\\d+/edit$", &["/user/1/edit", "/user/123/edit"]),
            ("/(data|conf|bin|inc)/", &["/data/x", "/a/conf/b/c", "/bin/"]),
            ("^/(?<lang>en|de)/private", &["/en/private", "/de/private/x"]),
            ("\\.(?:inc|bak)~?$", &["/x.inc", "/x.bak~"]),
            ("^.+\\.[^/]{3,4}$", &["/a.html", "/b.css"]),
            ("^/a(b(c|d)?)*e", &["/ae", "/abe", "/abcbde/x"]),
        ] {
            let patterns = patterns(expression).expect("it is understood");
            for path in paths {
                let is_found = patterns.iter().any(|one| is_matched(one, path.as_bytes()));
                assert!(is_found, "{expression}: {path}: {patterns:?}");
            }
        }
    }
}
