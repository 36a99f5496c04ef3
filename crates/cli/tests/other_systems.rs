//! A build for another system than Linux ends with one sentence, not with a compiler's errors.

use std::path::Path;
use std::process::Command;

#[test]
fn a_build_for_another_system_says_that_there_is_none() {
    let place = tempfile::tempdir().expect("a folder");
    for target in ["x86_64-apple-darwin", "x86_64-pc-windows-msvc"] {
        let output = Command::new(env!("CARGO"))
            .args(["check", "--locked", "--package", "gustnado-reactor"])
            .args(["--target", target, "--target-dir"])
            .arg(place.path())
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("RUSTFLAGS")
            .output()
            .expect("cargo runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{target}: {said}");
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error")).collect();
        assert_eq!(errors.len(), 2, "{target}: {said}");
        assert!(errors[0].contains("Gustnado runs on Linux only"), "{target}: {said}");
        assert!(errors[1].contains("build script logged errors"), "{target}: {said}");
    }
}
