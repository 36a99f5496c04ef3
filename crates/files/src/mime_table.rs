//! Types of files by extension: an operator's own, before those that are built in.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use gustnado_config::{RouteSettings, is_extension, is_media_type, mime_pair};

use super::content_type::{Charset, ContentType, extension};
use super::error::FilesError;

/// The most bytes of a file with types; Debian's has 70 KB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The types of a folder's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MimeTable {
    /// By extension, in small letters.
    own: HashMap<String, Arc<str>>,
    charset: Charset,
}

impl MimeTable {
    /// Reads the types of a folder's settings.
    ///
    /// # Errors
    /// The file with types cannot be read, or is none.
    pub(super) fn new(settings: &RouteSettings) -> Result<Self, FilesError> {
        let mut own = HashMap::new();
        if let Some(path) = &settings.mime_types {
            let text = read(path).and_then(|text| {
                add_all(&mut own, &text)?;
                Ok(())
            });
            text.map_err(|reason| FilesError::MimeTypes { path: path.clone(), reason })?;
        }
        for (extension, kind) in settings.mime.iter().filter_map(|text| mime_pair(text)) {
            own.insert(extension, Arc::from(kind));
        }
        let charset = match &*settings.charset {
            "" => Charset::None,
            "utf-8" => Charset::Usual,
            charset => Charset::Own(Arc::from(charset)),
        };
        Ok(Self { own, charset })
    }

    /// Returns the type of a file by its name, as [`ContentType::of`].
    pub(super) fn of(&self, name: &[u8]) -> ContentType {
        match self.own_of(name) {
            Some(kind) => ContentType::own(Arc::clone(kind), self.charset.clone()),
            None => ContentType::usual(extension(name), self.charset.clone()),
        }
    }

    fn own_of(&self, name: &[u8]) -> Option<&Arc<str>> {
        if self.own.is_empty() {
            return None;
        }
        // The longest first: `cwl.json` before `json`.
        let behind = |dot: usize| std::str::from_utf8(&name[dot + 1..]).ok();
        let mut extensions = memchr::memchr_iter(b'.', name).filter_map(behind);
        extensions.find_map(|extension| self.own.get(&extension.to_ascii_lowercase()))
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("expected at most 1 MiB, found more".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "expected text in UTF-8, found other bytes".to_owned())
}

/// Checks the file with types that the settings of a folder name.
///
/// # Errors
/// [`FilesError::MimeTypes`]
pub fn check_mime_types(settings: &RouteSettings) -> Result<(), FilesError> {
    MimeTable::new(settings).map(drop)
}

/// Adds the types of a file: lines of Apache, `text/html html htm`, or of nginx, with `types {`
/// around them and a semicolon behind each. A type with parameters stands in quotes.
fn add_all(own: &mut HashMap<String, Arc<str>>, text: &str) -> Result<(), String> {
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if matches!(line, "" | "types {" | "types{" | "types" | "{" | "}") {
            continue;
        }
        let line = line.trim_end_matches(';');
        let (kind, extensions) = match line.strip_prefix('"').and_then(|rest| rest.split_once('"'))
        {
            Some(quoted) => quoted,
            None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
        };
        if kind.ends_with(';') || !is_media_type(kind) {
            let form = "expected a type, in quotes if it has parameters";
            return Err(format!("line {}: {form}, found {kind:?}", at + 1));
        }
        let kind: Arc<str> = Arc::from(kind);
        for extension in extensions.split_whitespace().map(str::to_ascii_lowercase) {
            if !is_extension(&extension) {
                return Err(format!("line {}: expected an extension, found {extension:?}", at + 1));
            }
            own.insert(extension, Arc::clone(&kind));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tempfile::NamedTempFile;

    fn table(change: impl FnOnce(&mut RouteSettings)) -> Result<MimeTable, FilesError> {
        let mut settings = RouteSettings::default();
        change(&mut settings);
        MimeTable::new(&settings)
    }

    fn file(text: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("it is ours");
        file
    }

    #[test]
    fn own_types_come_before_those_of_the_file_and_those_before_the_usual_ones() {
        for text in [
            "# types\ntext/x-a\ta A2\napplication/x-b b\n\ntext/plain\n",
            "types {\n  text/x-a a A2;\n  application/x-b   b;  # b\n}\n",
        ] {
            let file = file(text);
            let table = table(|settings| {
                settings.mime_types = Some(file.path().to_owned());
                settings.mime = vec!["b=application/own".into(), "c=text/x; charset=koi8-r".into()];
            });
            let table = table.expect("types");
            for (name, expected) in [
                ("x.a", "text/x-a; charset=utf-8"),
                ("x.A2", "text/x-a; charset=utf-8"),
                ("x.B", "application/own"),
                ("x.c", "text/x; charset=koi8-r"),
                ("x.css", "text/css; charset=utf-8"),
                ("x", "application/octet-stream"),
            ] {
                assert_eq!(table.of(name.as_bytes()).to_string(), expected, "{name}");
            }
        }
    }

    #[test]
    fn extensions_may_have_dots_and_types_parameters() {
        let file =
            file("application/cwl+json\tcwl.json\n\"text/plain; charset=koi8-r\" koi;\ntext/x-k k");
        let table = table(|settings| settings.mime_types = Some(file.path().to_owned()));
        let table = table.expect("types");
        for (name, expected) in [
            ("a.cwl.json", "application/cwl+json"),
            ("a.b.CWL.json", "application/cwl+json"),
            ("a.json", "application/json"),
            ("a.koi", "text/plain; charset=koi8-r"),
            ("a.koi.k", "text/x-k; charset=utf-8"),
            ("..k", "text/x-k; charset=utf-8"),
        ] {
            assert_eq!(table.of(name.as_bytes()).to_string(), expected, "{name}");
        }
    }

    #[test]
    fn the_charset_is_another_one_or_none() {
        for (charset, expected) in [
            ("utf-8", "text/plain; charset=utf-8"),
            ("iso-8859-1", "text/plain; charset=iso-8859-1"),
            ("", "text/plain"),
        ] {
            let table = table(|settings| charset.clone_into(&mut settings.charset));
            assert_eq!(table.expect("types").of(b"a.txt").to_string(), expected);
        }
    }

    #[test]
    fn a_file_that_is_none_is_told_with_its_line() {
        for (text, reason) in [
            (
                "text/html html\nhtml text/html\n",
                "line 2: expected a type, in quotes if it has parameters, found \"html\"",
            ),
            ("text/plain; charset=koi8-r koi\n", "found \"text/plain;\""),
            ("text/html a/b\n", "line 1: expected an extension, found \"a/b\""),
        ] {
            let file = file(text);
            let failed = table(|settings| settings.mime_types = Some(file.path().to_owned()));
            let message = failed.expect_err("no types").to_string();
            assert!(message.contains(reason), "{message}");
        }
        let missing = table(|settings| settings.mime_types = Some("/nowhere/mime.types".into()));
        assert!(missing.expect_err("no file").to_string().contains("No such file"));
    }
}
