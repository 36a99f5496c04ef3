//! Import of nginx's configuration: any text is read or refused with its line, and what is made of
//! it can be read.
#![no_main]

use gustnado::site::{SiteFile, import_nginx_text};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // No file of this machine is read.
    let read = |_: &Path| Err("no such file".to_owned());
    let Ok(import) = import_nginx_text(Path::new("/nowhere/nginx.conf"), text, &read) else {
        return;
    };
    let lines = text.lines().count() + 1;
    assert!(import.left.iter().all(|left| (1..=lines).contains(&left.place.line)));
    // Folders are not there, and nothing else may be wrong.
    if let Err(error) = SiteFile::parse(Path::new("/nowhere/site.toml"), &import.text) {
        let is_folder = |text: &str| text.starts_with("route.folder: ");
        assert!(error.problems().iter().all(|problem| is_folder(&problem.text)), "{error}");
    }
});
