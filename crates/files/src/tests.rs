//! A request's whole path through this crate, on real folders.

mod archived;
mod cached;
mod deltas;
mod listed;
mod made;
mod paths;
mod selected;
mod tags;
mod targets;
mod variants;

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::task::{Context, Poll, Waker};

use gustnado_config::Listing;
use gustnado_http::head::{Decoded, Head};
use gustnado_http::limits::Limits;
use gustnado_http::response_writer::write_fields;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tempfile::TempDir;

use super::resolve::{Reopen, Resolver};
use super::response::FileContent;
use super::segment::Segment;
use super::*;

fn options() -> FileOptions {
    FileOptions { cache_bytes: 1 << 20, threads: 1, ..FileOptions::default() }
}

/// Returns the options of a folder with settings of its own.
fn tuned(change: impl FnOnce(&mut RouteSettings)) -> FileOptions {
    let mut options = options();
    change(&mut options.settings);
    options
}

/// The three methods of finding files, depending on the system.
const WAYS: [(Resolver, Reopen); 3] = [
    (Resolver::Openat2, Reopen::Proc),
    (Resolver::Walk, Reopen::Proc),
    (Resolver::Walk, Reopen::Again),
];

/// A moment long after any file was made, so that all of them have settled.
const LATER: u64 = 4_000_000_000;

/// A temporary folder `site`, served.
struct Scene {
    place: TempDir,
    files: Files,
    now: Now,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(options(), WAYS[0])
    }

    fn with(options: FileOptions, way: (Resolver, Reopen)) -> Scene {
        let place = TempDir::new().expect("a temporary folder");
        let site = place.path().join("site");
        fs::create_dir(&site).expect("a folder");
        let files = Files::open_with(&site, options, |path| Root::open_with(path, way.0, way.1));
        let now = Now { unix_secs: LATER, mono_ms: 50_000 };
        Scene { place, files: files.expect("the folder opens"), now }
    }

    /// - `bytes_max`: the largest file that gets a tag from its bytes.
    fn hashing(bytes_max: u64) -> Scene {
        let mut scene = Scene::new();
        let folder = Arc::get_mut(&mut scene.files.folder).expect("not shared yet");
        folder.hashing.bytes_max = bytes_max;
        scene
    }

    fn write(&self, at: &str, content: impl AsRef<[u8]>) {
        let path = self.place.path().join("site").join(at);
        fs::create_dir_all(path.parent().expect("beneath the site")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    /// Replaces a file as a deployment does: wholly, by one rename.
    fn replace(&self, at: &str, content: impl AsRef<[u8]>) {
        let next = self.place.path().join("next");
        fs::write(&next, content).expect("a file");
        fs::rename(next, self.place.path().join("site").join(at)).expect("a rename");
    }

    fn wait(&mut self, ms: u64) {
        self.now.mono_ms += ms;
    }

    fn get(&self, path: &str) -> Sent {
        self.send("GET", path, &[])
    }

    fn get_with(&self, path: &str, fields: &[&str]) -> Sent {
        self.send("GET", path, fields)
    }

    /// The pieces of content that is made while it is sent, one by one.
    fn pieces(&self, path: &str) -> impl Iterator<Item = Vec<u8>> + use<> {
        let response = self.respond("GET", path, &[]);
        let FileContent::Pieces(mut pieces) = response.content else {
            panic!("it comes in pieces: {response:?}");
        };
        std::iter::from_fn(move || {
            let mut context = Context::from_waker(Waker::noop());
            match pieces.poll_next(&mut context) {
                Poll::Ready(piece) => Some(piece?.expect("the disk works")),
                Poll::Pending => panic!("without threads, each piece is there at once"),
            }
        })
    }

    fn send(&self, method: &str, path: &str, fields: &[&str]) -> Sent {
        Sent::new(self.respond(method, path, fields), method == "HEAD")
    }

    /// The response to a request that came by https.
    fn secure(&self, method: &str, path: &str, fields: &[&str]) -> Sent {
        Sent::new(self.respond_to(method, path, fields, true), method == "HEAD")
    }

    fn respond(&self, method: &str, path: &str, fields: &[&str]) -> FileResponse {
        self.respond_to(method, path, fields, false)
    }

    fn respond_to(
        &self,
        method: &str,
        path: &str,
        fields: &[&str],
        is_secure: bool,
    ) -> FileResponse {
        let lines = fields.iter().fold(String::new(), |lines, field| lines + field + "\r\n");
        let input = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let outcome = Head::decode(input.as_bytes(), &mut 0, &Limits::default());
        let Ok(Decoded::Done(head)) = outcome else {
            panic!("{input}: {outcome:?}");
        };
        let request = head.on(input.as_bytes());
        match self.files.respond(None, &request, || is_secure, self.now) {
            FolderResponse::Ready(response) => *response,
            FolderResponse::Wait(lookup) => lookup.wait_here(self.now),
        }
    }
}

/// A response as a client receives it, without the fields that the server adds to all.
#[derive(Debug)]
struct Sent {
    head: String,
    body: Vec<u8>,
    hint: Option<&'static str>,
    /// How many parts of the body come straight from a file.
    file_parts: usize,
    /// In how many pieces content came that was made while it was sent.
    pieces: usize,
}

impl Sent {
    fn new(response: FileResponse, head_only: bool) -> Sent {
        let FileResponse { status, fields, content, hint } = response;
        let mut lines = Vec::new();
        write_fields(&mut lines, &fields);
        let lines = String::from_utf8(lines).expect("fields in ASCII");
        let head = format!("HTTP/1.1 {} {}\r\n{lines}", status.code(), status.reason());
        let mut sent = Sent { head, body: Vec::new(), hint, file_parts: 0, pieces: 0 };
        let length = match content {
            FileContent::Nothing => None,
            FileContent::Whole(file) => {
                sent.body.extend_from_slice(file.body());
                file.segment().into_iter().for_each(|segment| sent.append(segment));
                Some(file.size)
            }
            FileContent::Bytes(bytes) => {
                sent.body = bytes;
                Some(sent.body.len() as u64)
            }
            FileContent::Pieces(mut pieces) => {
                let mut context = Context::from_waker(Waker::noop());
                // (The tests' pieces have no pool: each is there at once.)
                while !head_only && let Poll::Ready(Some(piece)) = pieces.poll_next(&mut context) {
                    sent.body.extend(piece.expect("the disk works"));
                    sent.pieces += 1;
                }
                None
            }
            FileContent::Segments { segments, length } => {
                for segment in segments {
                    sent.append(segment);
                }
                Some(length)
            }
        };
        if let Some(length) = length {
            assert_eq!(sent.body.len() as u64, length, "what is promised is what is there");
            sent.head = format!("{}Content-Length: {length}\r\n", sent.head);
        }
        if head_only {
            sent.body.clear();
            sent.file_parts = 0;
        }
        sent
    }

    fn append(&mut self, segment: Segment) {
        match segment {
            Segment::Bytes(bytes) => self.body.extend(bytes),
            Segment::File { file, offset, len, .. } => {
                let len = usize::try_from(len).expect("test files are small");
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, offset).expect("the file is long enough");
                self.body.extend(bytes);
                self.file_parts += 1;
            }
        }
    }

    fn status(&self) -> u16 {
        self.head[9..12].parse().expect("a status code")
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|line| line.0.eq_ignore_ascii_case(name)).map(|line| line.1)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }

    fn etag(&self) -> &str {
        self.field("ETag").expect("an entity tag")
    }
}

#[test]
fn a_small_file_is_answered_with_all_its_fields() {
    let scene = Scene::new();
    scene.write("hello.txt", "Hello, world!");
    for _ in 0..2 {
        let sent = scene.get("/hello.txt?v=1");
        assert_eq!((sent.status(), sent.text()), (200, "Hello, world!"));
        assert_eq!(sent.field("Content-Type"), Some("text/plain; charset=utf-8"));
        assert_eq!(sent.field("Content-Length"), Some("13"));
        assert_eq!(sent.field("Accept-Ranges"), Some("bytes"));
        assert_eq!(sent.field("X-Content-Type-Options"), Some("nosniff"));
        assert!(sent.field("Last-Modified").is_some_and(|date| date.ends_with("GMT")));
        assert_eq!(sent.etag().len(), 18);
    }
}

#[test]
fn a_head_request_gets_the_same_fields_and_no_body() {
    let scene = Scene::new();
    scene.write("small", "small");
    scene.write("large", vec![b'x'; 100_000]);
    for path in ["/small", "/large", "/none", "/small"] {
        let (whole, head) = (scene.get(path), scene.send("HEAD", path, &[]));
        assert_eq!(whole.head, head.head);
        assert!(head.body.is_empty() && head.file_parts == 0);
    }
    let ranged = scene.send("HEAD", "/small", &["Range: bytes=0-1"]);
    assert_eq!((ranged.status(), ranged.field("Content-Length")), (200, Some("5")));
}

#[test]
fn a_file_of_eight_kilobytes_is_sent_from_the_disk() {
    let scene = Scene::new();
    for (bytes, file_parts) in [(0, 0), (8_191, 0), (8_192, 1), (100_000, 1)] {
        let content: Vec<u8> = (0..bytes).map(|at: u32| at.to_le_bytes()[0]).collect();
        scene.write(&format!("{bytes}.bin"), &content);
        for _ in 0..2 {
            let sent = scene.get(&format!("/{bytes}.bin"));
            assert_eq!((sent.status(), sent.file_parts), (200, file_parts), "{bytes}");
            assert_eq!(sent.field("Content-Length"), Some(bytes.to_string().as_str()));
            assert!(sent.body == content, "{bytes}");
        }
    }
}

#[test]
fn what_counts_as_a_small_file_is_a_setting() {
    let parts = |limit: u64, bytes: usize| {
        let scene = Scene::with(tuned(|settings| settings.small_file_bytes_max = limit), WAYS[0]);
        scene.write("file", vec![b'x'; bytes]);
        scene.get("/file");
        let sent = scene.get("/file");
        assert_eq!((sent.status(), sent.body.len()), (200, bytes), "{limit}");
        sent.file_parts
    };
    assert_eq!((parts(0, 0), parts(0, 1)), (0, 1));
    assert_eq!((parts(65_536, 65_536), parts(65_536, 65_537)), (0, 1));
}

#[test]
fn other_methods_are_refused_with_what_is_allowed() {
    let scene = Scene::new();
    scene.write("a", "a");
    for method in ["POST", "PUT", "DELETE", "TRACE", "PATCH"] {
        for path in ["/a", "/none"] {
            let sent = scene.send(method, path, &[]);
            assert_eq!(sent.status(), 405, "{method}");
            assert_eq!(sent.field("Allow"), Some("GET, HEAD, OPTIONS"));
        }
    }
    for path in ["/a", "*"] {
        let sent = scene.send("OPTIONS", path, &[]);
        assert_eq!((sent.status(), sent.body.len()), (204, 0));
        assert_eq!(sent.field("Allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(sent.field("Content-Length"), None);
    }
}

#[test]
fn a_folder_that_cannot_be_served_is_told_in_one_line() {
    let place = TempDir::new().expect("a temporary folder");
    let file = place.path().join("file");
    fs::write(&file, "").expect("a file");
    let error = |path: &Path| {
        let message = Files::open(path, options()).expect_err("no folder").to_string();
        assert!(!message.contains('\n') && message.contains(&path.display().to_string()));
        message
    };
    assert!(error(&place.path().join("none")).starts_with("no folder at "));
    assert!(error(&file).contains("is not a folder"));
}

/// Runs a test on a thread that permissions count for, as root may read everything.
fn unprivileged(test: impl FnOnce() + Send) {
    let run = || {
        if let Ok(mut sets) = capabilities(None) {
            sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, sets).expect("fewer are allowed");
        }
        test();
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("the test passes"));
}

fn forbid(scene: &Scene, at: &str) {
    let path = scene.place.path().join("site").join(at);
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("permissions");
}

#[test]
fn what_must_not_be_read_is_forbidden_and_counted() {
    unprivileged(|| {
        for way in WAYS {
            let scene = Scene::with(options(), way);
            scene.write("page", "page");
            forbid(&scene, "page");
            assert_eq!(scene.get("/page").status(), 403);
            assert_eq!(scene.files.failures(), FileFailures { denied: 1, ..Default::default() });
        }
    });
}
