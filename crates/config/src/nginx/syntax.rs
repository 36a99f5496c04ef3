//! The syntax of nginx's configuration files: directives with arguments, and blocks of them.

use std::path::Path;
use std::sync::Arc;

use crate::file_settings::FilePlace;

/// How deep blocks may be in each other.
const DEPTH_MAX: usize = 32;

/// A directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) place: FilePlace,
    pub(super) name: String,
    pub(super) args: Vec<String>,
    /// The directives of its block, if it has one.
    pub(super) block: Option<Vec<Directive>>,
    /// What keeps the file that it names from being taken over.
    pub(super) problem: Option<String>,
}

impl Directive {
    /// Returns the arguments as texts.
    pub(super) fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    /// Returns the directive as it is shown: its name and arguments.
    pub(super) fn shown(&self) -> String {
        let words: Vec<&str> = [&*self.name].into_iter().chain(self.args()).collect();
        words.join(" ").chars().take(120).collect()
    }
}

/// The error of a text that is not in nginx's syntax, with its line.
pub(super) type SyntaxError = (usize, String);

/// Reads the directives of a file.
///
/// # Errors
/// What is wrong with it, and in which line.
pub(super) fn parse(file: &Arc<Path>, text: &str) -> Result<Vec<Directive>, SyntaxError> {
    let mut parser = NginxParser { file, lexer: NginxLexer { rest: text, line: 1 } };
    parser.block(0)
}

struct NginxParser<'t> {
    file: &'t Arc<Path>,
    lexer: NginxLexer<'t>,
}

impl NginxParser<'_> {
    /// Reads directives up to the end of a block, or of the file at depth 0.
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        let mut all = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut line = 0;
        loop {
            let token = self.lexer.next()?;
            let at = self.lexer.line;
            match token {
                NginxToken::Word(word) => {
                    line = if words.is_empty() { at } else { line };
                    words.push(word);
                }
                NginxToken::Semicolon if words.is_empty() => {}
                NginxToken::Semicolon => all.push(self.directive(line, &mut words, None)),
                NginxToken::Open if words.is_empty() => {
                    return Err((at, "expected a name before {, found none".to_owned()));
                }
                NginxToken::Open if depth == DEPTH_MAX => {
                    return Err((at, format!("expected blocks at most {DEPTH_MAX} deep")));
                }
                NginxToken::Open if words[0].ends_with("_by_lua_block") => {
                    self.lexer.skip_block()?;
                    all.push(self.directive(line, &mut words, Some(Vec::new())));
                }
                NginxToken::Open => {
                    let block = self.block(depth + 1)?;
                    all.push(self.directive(line, &mut words, Some(block)));
                }
                NginxToken::Close | NginxToken::End if !words.is_empty() => {
                    return Err((line, format!("expected ; behind {}, found none", words[0])));
                }
                NginxToken::Close if depth == 0 => {
                    return Err((at, "a } closes nothing; leave it out".to_owned()));
                }
                NginxToken::End if depth > 0 => {
                    return Err((at, "expected }, found the end of the file".to_owned()));
                }
                NginxToken::Close | NginxToken::End => return Ok(all),
            }
        }
    }

    fn directive(
        &self,
        line: usize,
        words: &mut Vec<String>,
        block: Option<Vec<Directive>>,
    ) -> Directive {
        let name = words.remove(0);
        let place = FilePlace { file: Arc::clone(self.file), line };
        Directive { place, name, args: std::mem::take(words), block, problem: None }
    }
}

#[derive(Debug)]
enum NginxToken {
    Word(String),
    Semicolon,
    Open,
    Close,
    End,
}

struct NginxLexer<'t> {
    rest: &'t str,
    line: usize,
}

impl NginxLexer<'_> {
    fn bump(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        self.line += usize::from(letter == '\n');
        Some(letter)
    }

    fn next(&mut self) -> Result<NginxToken, SyntaxError> {
        loop {
            let Some(letter) = self.rest.chars().next() else { return Ok(NginxToken::End) };
            match letter {
                _ if letter.is_ascii_whitespace() || letter == '\u{feff}' => {
                    self.bump();
                }
                '#' => while !matches!(self.bump(), None | Some('\n')) {},
                ';' | '{' | '}' => {
                    self.bump();
                    return Ok(match letter {
                        ';' => NginxToken::Semicolon,
                        '{' => NginxToken::Open,
                        _ => NginxToken::Close,
                    });
                }
                '"' | '\'' => return self.quoted(letter),
                _ => return Ok(NginxToken::Word(self.plain())),
            }
        }
    }

    fn plain(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                // `${name}` is a part of a word.
                '{' if word.ends_with('$') => {}
                '}' if word.rfind("${").is_some_and(|at| !word[at..].contains('}')) => {}
                ';' | '{' | '}' => break,
                _ if letter.is_ascii_whitespace() => break,
                '\\' => {
                    self.bump();
                    push_escaped(&mut word, self.bump());
                    continue;
                }
                _ => {}
            }
            word.push(letter);
            self.bump();
        }
        word
    }

    fn quoted(&mut self, quote: char) -> Result<NginxToken, SyntaxError> {
        let line = self.line;
        self.bump();
        let mut word = String::new();
        loop {
            match self.bump() {
                None => return Err((line, format!("expected {quote} at the end of a text"))),
                Some('\\') => {
                    let escaped = self.bump();
                    push_escaped(&mut word, escaped);
                }
                Some(letter) if letter == quote => return Ok(NginxToken::Word(word)),
                Some(letter) => word.push(letter),
            }
        }
    }

    /// Skips a block of another language: its braces have to be in pairs.
    fn skip_block(&mut self) -> Result<(), SyntaxError> {
        let (mut open, line) = (1, self.line);
        while open > 0 {
            match self.bump() {
                Some('{') => open += 1,
                Some('}') => open -= 1,
                Some(_) => {}
                None => return Err((line, "expected }, found the end of the file".to_owned())),
            }
        }
        Ok(())
    }
}

/// As nginx: some letters lose their backslash, others keep it, as regular expressions need.
fn push_escaped(word: &mut String, letter: Option<char>) {
    match letter {
        Some('t') => word.push('\t'),
        Some('r') => word.push('\r'),
        Some('n') => word.push('\n'),
        Some(letter @ ('"' | '\'' | '\\')) => word.push(letter),
        Some(letter) => {
            word.push('\\');
            word.push(letter);
        }
        None => word.push('\\'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn parsed(text: &str) -> Result<Vec<Directive>, SyntaxError> {
        parse(&Path::new("nginx.conf").into(), text)
    }

    /// Writes directives as nginx reads them.
    fn written(all: &[Directive]) -> String {
        let mut text = String::new();
        for one in all {
            for word in [&one.name].into_iter().chain(&one.args) {
                let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
                write!(text, "\"{escaped}\" ").expect("a string takes all text");
            }
            match &one.block {
                None => text.push(';'),
                Some(block) => {
                    write!(text, "{{ {} }}", written(block)).expect("a string takes all text");
                }
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn directives_have_arguments_blocks_and_lines() {
        let text = "# a comment\nuser www-data;\nhttp { # another\n  server {\n listen 80;\n\n\
                    location ~ \\.php$ { add_header X \"a; 'b' }\" always; }\n}\n}\n\
                    set $x \"${y}\"; return 200 a${z}b;";
        let all = parsed(text).expect("it is well");
        assert_eq!(all.len(), 4);
        assert_eq!((all[0].name.as_str(), all[0].place.line), ("user", 2));
        let server = &all[1].block.as_ref().expect("a block")[0];
        let inner = server.block.as_ref().expect("a block");
        assert_eq!((inner[1].shown().as_str(), inner[1].place.line), ("location ~ \\.php$", 7));
        let header = &inner[1].block.as_ref().expect("a block")[0];
        assert_eq!(header.args(), ["X", "a; 'b' }", "always"]);
        assert_eq!(all[3].args(), ["200", "a${z}b"]);
    }

    #[test]
    fn lua_is_skipped_whole() {
        let text = "content_by_lua_block { if x then y = { 1; } end } listen 80;";
        let all = parsed(text).expect("it is well");
        assert_eq!((all.len(), all[1].name.as_str()), (2, "listen"));
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, line, part) in [
            ("a;\n}", 2, "closes nothing"),
            ("a {\nb;", 2, "expected }"),
            ("\na", 2, "expected ; behind a"),
            ("a {\nb\n}", 2, "expected ; behind b"),
            ("\n\"abc", 2, "expected \" at the end"),
            ("{", 1, "expected a name before {"),
            (&"a {".repeat(40), 1, "at most 32 deep"),
        ] {
            let (at, found) = parsed(text).expect_err(text);
            assert!(at == line && found.contains(part), "{text}: {at}: {found}");
        }
    }

    fn directives() -> impl Strategy<Value = Vec<Directive>> {
        let place = FilePlace { file: Path::new("x").into(), line: 0 };
        let plain = (any::<String>(), proptest::collection::vec(any::<String>(), 0..3)).prop_map(
            move |(name, args)| {
                let name = format!("x{name}").replace("_by_lua_block", "");
                Directive { place: place.clone(), name, args, block: None, problem: None }
            },
        );
        let leaf = proptest::collection::vec(plain.clone(), 0..3);
        leaf.prop_recursive(4, 32, 3, move |inner| {
            let with_block = (plain.clone(), inner)
                .prop_map(|(one, block)| Directive { block: Some(block), ..one });
            proptest::collection::vec(with_block, 0..3)
        })
    }

    fn without_places(all: &mut [Directive]) {
        for one in all {
            one.place = FilePlace::default();
            without_places(one.block.as_deref_mut().unwrap_or_default());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_with_a_line_of_it(text in any::<String>()) {
            if let Err((line, _)) = parsed(&text) {
                prop_assert!(line >= 1 && line <= text.lines().count() + 1);
            }
        }

        #[test]
        fn texts_of_its_own_letters_are_read_or_refused(text in "[a{};\"'\\\\# \n$]{0,64}") {
            if let Err((line, _)) = parsed(&text) {
                prop_assert!(line >= 1 && line <= text.lines().count() + 1);
            }
        }

        #[test]
        fn what_is_written_is_read_as_the_same(mut all in directives()) {
            let mut again = parsed(&written(&all)).expect("it is well formed");
            without_places(&mut all);
            without_places(&mut again);
            prop_assert_eq!(again, all);
        }
    }
}
