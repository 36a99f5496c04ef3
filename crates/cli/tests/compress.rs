//! `gustnado compress`: what it writes, what it leaves alone, and what it says.

mod gustnado;

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::{Decompress, FlushDecompress};
use gustnado::{Ended, command, ended};
use tempfile::TempDir;

/// A folder to be compressed.
struct Folder(TempDir);

impl Folder {
    /// Creates one with `app.js`, `page.html` in a folder, and what is not worth it.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.write("app.js", script("first"));
        folder.write("docs/page.html", "<p>text</p>\n".repeat(200));
        folder.write("tiny.txt", "tiny");
        folder.write("noise.txt", noise(4_000));
        folder.write("photo.png", script("a picture"));
        folder.write(".hidden.js", script("hidden"));
        symlink("app.js", folder.path("link.js")).expect("a link");
        folder
    }

    fn path(&self, at: &str) -> PathBuf {
        self.0.path().join(at)
    }

    fn write(&self, at: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(at).parent().expect("a folder")).expect("a folder");
        fs::write(self.path(at), text).expect("a file");
    }

    /// Sets the time of a file's last change, in seconds before now.
    fn age(&self, at: &str, secs: u64) {
        let file = File::options().write(true).open(self.path(at)).expect("a file");
        let then = SystemTime::now() - Duration::from_secs(secs);
        file.set_times(FileTimes::new().set_modified(then)).expect("a time");
    }

    fn compress(&self, flags: &[&str]) -> Ended {
        let folder = self.0.path().to_str().expect("a path in UTF-8");
        ended(&mut command(&[&["compress", folder], flags].concat()))
    }

    /// Returns the names of all files, sorted.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for folder in ["", "docs"] {
            for entry in fs::read_dir(self.path(folder)).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_file() {
                    names.push(
                        path.strip_prefix(self.0.path()).expect("in it").display().to_string(),
                    );
                }
            }
        }
        names.sort();
        names
    }
}

fn script(what: &str) -> String {
    let lines: Vec<String> = (0..500).map(|at| format!("let {what}{at} = {};\n", at * 7)).collect();
    lines.concat()
}

/// Returns bytes that no coding makes fewer.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

fn gunzipped(path: &Path) -> Vec<u8> {
    let (bytes, mut out) = (fs::read(path).expect("a sibling"), Vec::with_capacity(1 << 20));
    let mut decoder = Decompress::new_gzip(15);
    decoder.decompress_vec(&bytes, &mut out, FlushDecompress::Finish).expect("it is gzip");
    out
}

#[test]
fn siblings_are_written_where_they_are_smaller_with_mode_and_time() {
    let folder = Folder::new();
    fs::set_permissions(folder.path("app.js"), fs::Permissions::from_mode(0o640)).expect("a mode");
    let first = folder.compress(&[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stderr.contains("6 siblings of 3 files written"), "{}", first.stderr);
    assert!(first.stderr.contains("3 left out: not smaller"), "{}", first.stderr);
    assert!(first.stderr.contains("--precompressed"), "{}", first.stderr);
    let expected = [
        ".gustnado-compress",
        ".hidden.js",
        "app.js",
        "app.js.br",
        "app.js.gz",
        "app.js.zst",
        "docs/page.html",
        "docs/page.html.br",
        "docs/page.html.gz",
        "docs/page.html.zst",
        "link.js",
        "noise.txt",
        "photo.png",
        "tiny.txt",
    ];
    assert_eq!(folder.names(), expected);
    assert!(gunzipped(&folder.path("app.js.gz")) == script("first").as_bytes());
    let original = fs::metadata(folder.path("app.js")).expect("a file");
    for ending in ["br", "zst", "gz"] {
        let meta = fs::metadata(folder.path(&format!("app.js.{ending}"))).expect("a sibling");
        assert_eq!(meta.mode() & 0o777, 0o640);
        assert_eq!(
            (meta.mtime(), meta.mtime_nsec()),
            (original.mtime(), original.mtime_nsec()),
            "{ending}"
        );
        assert!(meta.len() < original.len());
    }
}

#[test]
fn only_what_has_changed_is_compressed_again() {
    let folder = Folder::new();
    assert_eq!(folder.compress(&[]).code, Some(0));
    let inode = |at: &str| fs::metadata(folder.path(at)).expect("a sibling").ino();
    let before = (inode("app.js.br"), inode("docs/page.html.br"));
    let second = folder.compress(&[]);
    assert!(second.stderr.contains("0 siblings of 3 files written"), "{}", second.stderr);
    assert!(second.stderr.contains("9 up to date"), "{}", second.stderr);
    folder.write("app.js", script("second"));
    folder.age("app.js", 10);
    let third = folder.compress(&[]);
    assert!(third.stderr.contains("3 siblings of 3 files written"), "{}", third.stderr);
    let after = (inode("app.js.br"), inode("docs/page.html.br"));
    assert!(before.0 != after.0 && before.1 == after.1);
    assert!(gunzipped(&folder.path("app.js.gz")) == script("second").as_bytes());
    // It cannot be made smaller any more: the siblings of the former text go.
    folder.write("app.js", noise(4_000));
    folder.age("app.js", 5);
    assert_eq!(folder.compress(&[]).code, Some(0));
    assert!(!folder.names().iter().any(|name| name.starts_with("app.js.")));
}

/// Reproducible builds give all files the same time.
#[test]
fn other_bytes_of_the_same_time_are_compressed_again() {
    let folder = Folder::new();
    let pin = |at: &str| {
        let file = File::options().write(true).open(folder.path(at)).expect("a file");
        let modified = SystemTime::UNIX_EPOCH;
        file.set_times(FileTimes::new().set_modified(modified)).expect("a time");
    };
    let build = |text: &str| {
        folder.write("app.js", script(text));
        // Two builds of one length differ by their bytes alone.
        folder.write("docs/page.html", format!("<p>{text:9}</p>\n").repeat(200));
        pin("app.js");
        pin("docs/page.html");
    };
    for text in ["first", "second", "third", "3."] {
        build(text);
        assert_eq!(folder.compress(&[]).code, Some(0));
        assert!(gunzipped(&folder.path("app.js.gz")) == script(text).as_bytes(), "{text}");
        let page = gunzipped(&folder.path("docs/page.html.gz"));
        assert!(page == format!("<p>{text:9}</p>\n").repeat(200).as_bytes(), "{text}");
    }
    // The same bytes again, as another file: they are read, and no sibling is made.
    let inode = || fs::metadata(folder.path("app.js.br")).expect("a sibling").ino();
    let before = inode();
    build("3.");
    for _ in 0..2 {
        let again = folder.compress(&[]);
        assert!(again.stderr.contains("0 siblings of 3 files written"), "{}", again.stderr);
    }
    assert_eq!(inode(), before);
    // As does a file that could not be made smaller.
    folder.write("noise.txt", "a text that can be made smaller\n".repeat(125));
    pin("noise.txt");
    assert_eq!(folder.compress(&[]).code, Some(0));
    assert!(folder.names().iter().any(|name| name == "noise.txt.gz"), "{:?}", folder.names());
}

/// Where a build gives all files the same time, a server would send them.
#[test]
fn what_is_left_of_other_bytes_by_other_flags_is_removed() {
    let folder = Folder::new();
    let pinned = |text: String| {
        folder.write("app.js", text);
        folder.age("app.js", 1_000_000);
    };
    pinned(script("first"));
    assert_eq!(folder.compress(&[]).code, Some(0));
    assert!(folder.path("app.js.br").exists() && folder.path("app.js.zst").exists());
    pinned(script("other"));
    let tried = folder.compress(&["--codings", "gz", "--dry-run"]);
    assert!(tried.stderr.contains("2 removed: made of other bytes"), "{}", tried.stderr);
    assert!(folder.path("app.js.br").exists());
    let run = folder.compress(&["--codings", "gz"]);
    assert!(run.stderr.contains("2 removed: made of other bytes"), "{}", run.stderr);
    assert!(!folder.path("app.js.br").exists() && !folder.path("app.js.zst").exists());
    let kept = folder.path("docs/page.html.br");
    assert!(kept.exists() && folder.path("app.js.gz").exists(), "its file is as it was");
    pinned(script("third"));
    let run = folder.compress(&["--types", "text/css"]);
    assert!(run.stderr.contains("1 removed"), "{}", run.stderr);
    assert!(!folder.path("app.js.gz").exists() && kept.exists());
    assert_eq!(folder.compress(&[]).code, Some(0));
    assert!(folder.path("app.js.br").exists());
}

#[test]
fn what_others_have_written_is_left_alone() {
    let folder = Folder::new();
    folder.write("app.js.gz", "a backup of somebody");
    folder.age("app.js.gz", 1_000);
    symlink("app.js", folder.path("app.js.br")).expect("a link");
    let left = folder.compress(&[]);
    assert_eq!(left.code, Some(0));
    assert!(left.stderr.contains("2 left alone"), "{}", left.stderr);
    let backup = || fs::read_to_string(folder.path("app.js.gz")).expect("a file");
    assert_eq!(backup(), "a backup of somebody");
    // What this command has written, and another program has changed since, is theirs, too.
    folder.write("app.js.zst", "changed");
    folder.write("app.js", script("second"));
    folder.age("app.js", 10);
    assert!(folder.compress(&[]).stderr.contains("3 left alone"));
    assert_eq!(fs::read_to_string(folder.path("app.js.zst")).expect("a file"), "changed");
    let replaced = folder.compress(&["--overwrite"]);
    assert!(replaced.stderr.contains("2 siblings"), "{}", replaced.stderr);
    assert!(gunzipped(&folder.path("app.js.gz")) == script("second").as_bytes());
    assert!(folder.path("app.js.br").is_symlink(), "a link is never written through");
}

#[test]
fn a_dry_run_writes_nothing_and_says_the_same() {
    let folder = Folder::new();
    let before = folder.names();
    let dry = folder.compress(&["--dry-run", "--codings", "gz"]);
    assert_eq!((dry.code, folder.names()), (Some(0), before));
    assert!(dry.stderr.contains("2 siblings of 3 files would be written"), "{}", dry.stderr);
    assert!(dry.stderr.contains("gz: ") && !dry.stderr.contains("br: "), "{}", dry.stderr);
    assert_eq!(folder.compress(&["--quiet", "--types", "text/html"]).stderr, "");
    assert!(folder.path("docs/page.html.br").is_file() && !folder.path("app.js.br").exists());
}

#[test]
fn mistakes_are_named_and_failures_counted() {
    let folder = Folder::new();
    for (flags, code, text) in [
        (&["--codings", "lz4"][..], 2, "expected some of br, zst, gz, found \"lz4\""),
        (&["--types", "text"], 2, "expected a media type"),
        (&["--level", "1"], 2, "no such flag"),
    ] {
        let refused = folder.compress(flags);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.stderr.contains(text), "{refused:?}");
    }
    let none = ended(&mut command(&["compress", "/there/is/none"]));
    assert!(none.code == Some(1) && none.stderr.contains("/there/is/none"), "{none:?}");
    let nothing = ended(&mut command(&["compress"]));
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    // The list is another program's: nothing is touched.
    folder.write(".gustnado-compress", "something else");
    let other = folder.compress(&[]);
    assert!(other.code == Some(1) && other.stderr.contains("no list"), "{other:?}");
    assert!(!folder.path("app.js.br").exists());
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_and_the_others_are() {
    if rustix::process::geteuid().is_root() {
        return; // root may write everywhere
    }
    let folder = Folder::new();
    let docs = folder.path("docs");
    fs::set_permissions(&docs, fs::Permissions::from_mode(0o555)).expect("a mode");
    let failed = folder.compress(&[]);
    fs::set_permissions(&docs, fs::Permissions::from_mode(0o755)).expect("a mode");
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("3 failed") && failed.stderr.contains("page.html.br: "));
    assert!(folder.path("app.js.br").exists());
    assert!(!folder.names().iter().any(|name| name.contains(".new")));
}
