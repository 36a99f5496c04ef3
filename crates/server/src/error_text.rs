//! How errors read. `fn main() -> gustnado::Result<()>`, the form of every example, prints what
//! `Debug` says: so that has to be what a person can use, and not the names of fields.

use std::error::Error;
use std::fmt;

/// Writes what an error's `Display` says, and what its causes say besides.
fn write_whole(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = error.source();
    }
    f.write_str(&said)
}

macro_rules! debug_as_read {
    ($($error:ty),+ $(,)?) => { $(
        /// What `Display` says, and the causes that it leaves out.
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_whole(self, f)
            }
        }
    )+ };
}

debug_as_read!(
    crate::StartError,
    crate::RouteError,
    crate::files::FilesError,
    crate::FormatError,
    crate::BodyError,
    crate::ParamError,
    crate::AppendError,
    crate::config::ConfigError,
    crate::site::SiteError,
    crate::forms::FormError,
    crate::client::ClientError,
    crate::client::UrlError,
    crate::protocol::CallError,
    crate::protocol::ConnectError,
    crate::protocol::EngineError,
    crate::protocol::ListenError,
    crate::protocol::WriteError,
    crate::test::TestError,
);
#[cfg(feature = "json")]
debug_as_read!(crate::JsonError, crate::QueryError);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};

    use crate::StartError;
    use crate::client::ClientError;

    #[test]
    fn an_error_reads_with_the_causes_that_it_leaves_out_and_no_other() {
        let error = || io::Error::other("the cause");
        let endpoint = "127.0.0.1:80".parse().map(crate::Endpoint::Tcp).expect("an address");
        let listen = StartError::Listen { endpoint, error: error() };
        assert_eq!(format!("{listen:?}"), listen.to_string());
        assert_eq!(format!("{listen:?}").matches("the cause").count(), 1);
        let broken = ClientError::Broken { host: "h".into(), error: error() };
        assert_eq!(format!("{broken:?}"), "h: the connection broke: the cause");
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder of sources");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn no_public_error_derives_its_debug() {
        let mut found = 0;
        for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            let text = fs::read_to_string(&path).expect("a source");
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let item = line.strip_prefix("pub enum ").or(line.strip_prefix("pub struct "));
                let name = item.and_then(|item| item.split([' ', '(', '<']).next());
                if name.is_some_and(|name| name.ends_with("Error")) {
                    found += 1;
                    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
                    let mut derived = above.filter(|line| line.contains("Debug"));
                    assert_eq!(derived.next(), None, "{}: {line}", path.display());
                }
            }
        }
        assert!(found >= 17, "only {found} were found");
    }
}
