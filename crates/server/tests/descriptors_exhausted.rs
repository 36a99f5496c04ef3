//! A folder is served on when no descriptor is free.
//!
//! A binary of its own: it lowers the limit of descriptors, which is its whole process's.

use std::fs::{self, File};
use std::path::Path;

use gustnado::files::{FileOptions, Files};
use gustnado_http::head::{Decoded, Head};
use gustnado_http::limits::Limits;
use gustnado_tasks::Now;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn status(files: &Files, path: &str, mono_ms: u64) -> u16 {
    let input = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let outcome = Head::decode(input.as_bytes(), &mut 0, &Limits::default());
    let Ok(Decoded::Done(head)) = outcome else {
        panic!("{outcome:?}");
    };
    let now = Now { unix_secs: 4_000_000_000, mono_ms };
    files.status(&head.on(input.as_bytes()), now).code()
}

fn take_all_descriptors() -> Vec<File> {
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    taken
}

#[test]
fn what_is_cached_is_served_and_the_rest_is_put_off() {
    let place = tempfile::TempDir::new().expect("a temporary folder");
    let write = |at: &str| fs::write(Path::new(place.path()).join(at), at).expect("a file");
    write("cached");
    write("other");
    let options = FileOptions { cache_bytes: 1 << 20, ..FileOptions::default() };
    let files = Files::open(place.path(), options).expect("the folder opens");
    assert_eq!(status(&files, "/cached", 0), 200);

    let limit = getrlimit(Resource::Nofile);
    let low = Rlimit { current: Some(64), maximum: limit.maximum };
    setrlimit(Resource::Nofile, low).expect("a limit can be lowered");
    let taken = take_all_descriptors();
    let other = status(&files, "/other", 5_000);
    let cached = status(&files, "/cached", 5_000);
    drop(taken);
    setrlimit(Resource::Nofile, limit).expect("the limit comes back");

    assert_eq!((other, cached), (503, 200));
    assert_eq!(files.failures().exhausted, 2);
    assert_eq!(status(&files, "/other", 5_001), 200);
}
