//! Declaration of the settings of folders: how their paths lead to files, and of which types those
//! are.

use gustnado_http::fields::check_field;

use super::fields::{choice, file_path, list, number, switch};
use super::listing::Archives;
use super::tunable::{Field, SettingGroup, Tunable};

/// The slash at the end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrailingSlash {
    /// A folder's path has one: without it, a request is redirected. A file's path has none.
    #[default]
    Add,
    /// No path of a page has one: with it, a request is redirected.
    Remove,
    /// A page is found with it and without it.
    Ignore,
}

impl TrailingSlash {
    /// Every member, in the order of [`Self::NAMES`]; the first is the default.
    pub const ALL: [Self; 3] = [Self::Add, Self::Remove, Self::Ignore];
    /// The name of each member, as flags and files have it.
    pub const NAMES: [&'static str; 3] = ["add", "remove", "ignore"];

    /// Returns the name of this member, as flags and files have it.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// One place where a request's file is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryFile {
    /// The file at the request's path with this text behind it: `$uri.html`.
    Beside(String),
    /// The folder at the request's path, with its index or its listing: `$uri/`.
    Folder,
    /// The file at this path below the root, whatever the request's path: `/app.html`.
    Fixed(String),
    /// Nothing: 404, as without it.
    NotFound,
}

impl TryFile {
    /// Reads a template: `$uri`, or `{path}`, with what follows it; a path; or `=404`.
    pub fn parse(text: &str) -> Option<Self> {
        let has_parent = text.split('/').any(|segment| segment == "..");
        if has_parent || text.bytes().any(|byte| !byte.is_ascii_graphic() && byte.is_ascii()) {
            return None;
        }
        let behind = text.strip_prefix("$uri").or_else(|| text.strip_prefix("{path}"));
        match (behind, text) {
            (Some("/"), _) => Some(Self::Folder),
            (Some(behind), _) => {
                let is_name = !behind.contains(['$', '{']) && !behind.ends_with('/');
                is_name.then(|| Self::Beside(behind.to_owned()))
            }
            (None, "=404") => Some(Self::NotFound),
            (None, path) => {
                let below = path.strip_prefix('/')?;
                let is_path = !below.is_empty() && !below.contains(['$', '{', '?', '#']);
                let is_clean = below.split('/').all(|segment| !matches!(segment, "" | "."));
                (is_path && is_clean).then(|| Self::Fixed(below.to_owned()))
            }
        }
    }
}

/// Returns an extension, in small letters and without its dot, and its type.
#[doc(hidden)]
pub fn mime_pair(text: &str) -> Option<(String, &str)> {
    let (extension, kind) = text.split_once('=')?;
    let extension = extension.trim().trim_start_matches('.').to_ascii_lowercase();
    let kind = kind.trim();
    (is_extension(&extension) && is_media_type(kind)).then_some((extension, kind))
}

/// Returns whether a text may be the extension of a name.
#[doc(hidden)]
pub fn is_extension(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_graphic() && !b"/\\".contains(&byte);
    // `json`, or `cwl.json`.
    let has_parts = text.split('.').all(|part| !part.is_empty());
    has_parts && text.len() <= 64 && text.bytes().all(letter)
}

/// Returns whether a text is a media type (RFC 9110 §8.3.1), maybe with parameters.
#[doc(hidden)]
pub fn is_media_type(text: &str) -> bool {
    let name = text.split(';').next().unwrap_or_default().trim_end();
    let is_token = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !part.is_empty() && part.bytes().all(letter)
    };
    let is_pair = name.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub));
    is_pair && text.len() <= 255 && check_field("Content-Type", text.as_bytes()).is_ok()
}

fn is_mime(text: &str) -> bool {
    mime_pair(text).is_some()
}

fn is_file_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && text != "." && text != ".." && !text.contains('/')
}

fn is_try_file(text: &str) -> bool {
    TryFile::parse(text).is_some()
}

fn is_charset(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:.+".contains(&byte);
    text.len() <= 64 && text.bytes().all(letter)
}

pub(super) const INDEX: Tunable = Tunable {
    name: "index",
    group: SettingGroup::Folders,
    default: "index.html",
    doc: "Names of the file that is served for a folder, the first one that is there",
    field: list!(routes.index, "the name of a file such as index.html", is_file_name),
};

pub(super) const TRY_FILES: Tunable = Tunable {
    name: "try-files",
    group: SettingGroup::Folders,
    default: "",
    doc: "Where a request's file is looked for, in order; none is $uri,$uri/",
    field: list!(
        routes.try_files,
        "$uri, $uri with text behind it such as $uri.html, $uri/ for a folder, a path such as \
         /app.html, or =404",
        is_try_file
    ),
};

pub(super) const CLEAN_URLS: Tunable = Tunable {
    name: "clean-urls",
    group: SettingGroup::Folders,
    default: "false",
    doc: "Serve about.html at /about, and redirect /about.html to it",
    field: switch!(routes.clean_urls),
};

pub(super) const TRAILING_SLASH: Tunable = Tunable {
    name: "trailing-slash",
    group: SettingGroup::Folders,
    default: "add",
    doc: "Slash behind a folder's path: redirect to it, away from it, or take both",
    field: choice!(routes.trailing_slash, TrailingSlash),
};

pub(super) const MIME: Tunable = Tunable {
    name: "mime",
    group: SettingGroup::Folders,
    default: "",
    doc: "Types of files by extension, before those that are built in",
    field: list!(routes.mime, "an extension with its type, such as wasm=application/wasm", is_mime),
};

pub(super) const MIME_TYPES: Tunable = Tunable {
    name: "mime-types",
    group: SettingGroup::Folders,
    default: "",
    doc: "File with types by extension, such as /etc/mime.types or one of nginx",
    field: file_path!(routes.mime_types),
};

pub(super) const CHARSET: Tunable = Tunable {
    name: "charset",
    group: SettingGroup::Folders,
    default: "utf-8",
    doc: "Charset that text files are declared with; empty declares none",
    field: Field::Text {
        what: "a charset such as utf-8, or nothing",
        allowed: is_charset,
        get: |config| &config.routes.charset,
        set: |config, text| text.clone_into(&mut config.routes.charset),
    },
};

pub(super) const LISTING_README: Tunable = Tunable {
    name: "listing-readme",
    group: SettingGroup::Folders,
    default: "false",
    doc: "Show the README of a folder below its listing",
    field: switch!(routes.listing_readme),
};

pub(super) const ARCHIVES: Tunable = Tunable {
    name: "archives",
    group: SettingGroup::Folders,
    default: "off",
    doc: "Let clients download listed folders as one file: ?archive=tar.zst or zip",
    field: choice!(routes.archives, Archives),
};

pub(super) const ARCHIVE_BYTES_MAX: Tunable = Tunable {
    name: "archive-bytes-max",
    group: SettingGroup::Folders,
    default: "unlimited",
    doc: "Bytes that all files of an archive may have together",
    field: number!(routes.archive_bytes_max, Bytes, 1..=1 << 50, or "unlimited"),
};

pub(super) const ARCHIVES_MAX: Tunable = Tunable {
    name: "archives-max",
    group: SettingGroup::Files,
    default: "4",
    doc: "Archives of folders that are made at once, on the whole server",
    field: number!(archives_max, Count, 1..=1_000),
};

pub(super) const UPLOAD: Tunable = Tunable {
    name: "upload",
    group: SettingGroup::Folders,
    default: "false",
    doc: "Take files that clients send to folders, by PUT and by forms",
    field: switch!(routes.upload),
};

pub(super) const UPLOAD_OVERWRITE: Tunable = Tunable {
    name: "upload-overwrite",
    group: SettingGroup::Folders,
    default: "false",
    doc: "Let a file that is sent replace the one with its name",
    field: switch!(routes.upload_overwrite),
};

pub(super) const UPLOAD_BYTES_MAX: Tunable = Tunable {
    name: "upload-bytes-max",
    group: SettingGroup::Folders,
    default: "1g",
    doc: "Largest file that may be sent to a folder, and largest form",
    field: number!(routes.upload_bytes_max, Bytes, 1..=1 << 50),
};

pub(super) const UPLOAD_QUOTA: Tunable = Tunable {
    name: "upload-quota",
    group: SettingGroup::Folders,
    default: "unlimited",
    doc: "Bytes that all files of a folder may have together",
    field: number!(routes.upload_quota, Bytes, 1..=1 << 50, or "unlimited"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_those_of_nginx_and_caddy() {
        let beside = |text: &str| Some(TryFile::Beside(text.to_owned()));
        for (text, expected) in [
            ("$uri", beside("")),
            ("{path}", beside("")),
            ("$uri.html", beside(".html")),
            ("{path}.html", beside(".html")),
            ("$uri/index.html", beside("/index.html")),
            ("$uri/", Some(TryFile::Folder)),
            ("/app.html", Some(TryFile::Fixed("app.html".to_owned()))),
            ("=404", Some(TryFile::NotFound)),
            ("app.html", None),
            ("/", None),
            ("/a//b", None),
            ("/../secret", None),
            ("$uri/../x", None),
            ("$uri$args", None),
            ("/index.php?$args", None),
            ("=500", None),
            ("", None),
            ("$uri.html\n", None),
        ] {
            assert_eq!(TryFile::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn types_are_checked() {
        assert_eq!(mime_pair("Wasm=application/wasm"), Some(("wasm".into(), "application/wasm")));
        let with = mime_pair(".txt=text/plain; charset=koi8-r");
        assert_eq!(with, Some(("txt".into(), "text/plain; charset=koi8-r")));
        for bad in ["", "wasm", "=a/b", "a b=c/d", "x=plain", "x=a/b/c", "x=a/b\r\nc: d", "a/b=c/d"]
        {
            assert_eq!(mime_pair(bad), None, "{bad:?}");
        }
    }
}
