//! Configuration files: any text is read or refused, each mistake has its line, and what is in
//! effect reads again as the same.
#![no_main]

use gustnado::site::SiteFile;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Nothing is there, so that no folder of this machine is opened.
    let path = Path::new("/nowhere/site.toml");
    match SiteFile::parse(path, text) {
        Ok(file) => {
            let settings = file.settings();
            let shown = SiteFile::effective(Some(&file), &settings);
            let again = SiteFile::parse(path, &shown).expect("what is in effect can be read");
            assert_eq!(again.settings().config, settings.config);
            file.server_with(settings.config).check().expect("what is read can be served");
        }
        Err(error) => {
            assert!(!error.problems().is_empty());
            let lines = text.lines().count() + 1;
            assert!(error.problems().iter().all(|problem| problem.line <= lines));
        }
    }
});
