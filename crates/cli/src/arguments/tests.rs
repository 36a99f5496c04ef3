//! Unit tests of arguments.

use gustnado::config::Field;

use super::*;

fn subcommand(words: &[&str]) -> Result<Subcommand, UsageError> {
    let args = std::iter::once("gustnado").chain(words.iter().copied()).map(OsString::from);
    read(args, std::iter::empty())
}

fn served(words: &[&str]) -> Settings {
    match subcommand(words) {
        Ok(Subcommand::Serve(options)) => options.settings,
        other => panic!("expected serve, got {other:?}"),
    }
}

fn refused(words: &[&str]) -> String {
    subcommand(words).expect_err("not understood").line
}

#[test]
fn the_command_is_well_formed() {
    command().debug_assert();
}

#[test]
fn serve_is_what_happens_when_no_command_is_named() {
    assert_eq!(served(&[]).config.root, None);
    assert_eq!(served(&["./public"]).config.root, Some("./public".into()));
    assert_eq!(served(&["--port", "81"]).config.port, 81);
    assert_eq!(served(&["-p", "82", "x"]).config.port, 82);
    assert_eq!(served(&["serve", "x", "--workers=3"]).config.workers, 3);
}

#[test]
fn every_group_of_settings_has_its_place_in_the_help() {
    for tunable in TUNABLES {
        assert!(GROUPS.contains(&tunable.group), "{}: {:?}", tunable.name, tunable.group);
    }
}

#[test]
fn every_flag_of_the_table_is_taken() {
    for tunable in TUNABLES.iter().filter(|tunable| !tunable.is_argument()) {
        let value = match (&tunable.field, tunable.default) {
            (Field::List { .. }, _) if tunable.name == "listen" => "127.0.0.1:0,unix:x",
            (Field::List { .. }, _) if tunable.name == "acme" => "example.org,192.0.2.1",
            (Field::List { .. }, _) if tunable.name == "index" => "a.html,b.html",
            (Field::List { .. }, _) if tunable.name == "try-files" => "$uri,=404",
            (Field::List { .. }, _) if tunable.name == "mime" => "wasm=application/wasm",
            (Field::List { .. }, _) if tunable.name == "compress-types" => "text/*",
            (Field::List { .. }, _) if tunable.name == "cors" => "https://example.org",
            (Field::List { .. }, _) if tunable.name == "cors-headers" => "X-One,X-Two",
            (Field::List { .. }, _) if tunable.name == "error-page" => "404=404.html,5xx=50x.html",
            (Field::List { .. }, default) if !default.is_empty() => default,
            (Field::List { .. }, _) => "127.0.0.1,10.0.0.0/8,unix",
            (_, "") if tunable.name == "uds-mode" => "660",
            (_, "") if tunable.name == "acme-email" => "me@example.org",
            (_, "") if tunable.name.ends_with("-path") => "/x",
            (_, "") => "x",
            (_, default) => default,
        };
        let flag = format!("{}={value}", tunable.flag());
        assert!(subcommand(&["serve", &flag]).is_ok(), "{flag}");
        assert!(subcommand(&["check", &flag]).is_ok(), "{flag}");
    }
}

#[test]
fn a_switch_needs_no_value_and_takes_one_behind_an_equals_sign() {
    assert!(served(&["--hidden"]).config.routes.hidden);
    assert!(served(&["--hidden", "dir"]).config.routes.hidden);
    assert!(!served(&["--hidden=no"]).config.routes.hidden);
}

#[test]
fn the_last_of_a_repeated_flag_counts() {
    assert_eq!(served(&["--port", "81", "--port", "82"]).config.port, 82);
}

#[test]
fn each_mistake_is_one_line_with_a_remedy() {
    for (words, line) in [
        (&["--prot", "80"][..], "--prot: no such flag; did you mean --port?"),
        (
            &["--wibble-wobble"],
            "--wibble-wobble: no such flag; `gustnado serve --help` lists them all",
        ),
        (&["./a", "b"], "b: one folder is all that can be served; leave this one out"),
        (&["./a", "9000"], "9000: no such folder; to listen on that port: --port 9000"),
        (&["--directory-listing"], "--directory-listing: no such flag; here it is --listing"),
        (&["--tls", "x"], "--tls: no such flag; here it is --tls-cert FILE and --tls-key FILE"),
        (&["--usre", "x"], "--usre: no such flag; did you mean --user?"),
        (
            &["--port", "eighty"],
            "--port: expected a whole number from 0 to 65535, found \"eighty\"; leave it out \
             for 8080",
        ),
        (
            &["--port", "70000"],
            "--port: expected a whole number from 0 to 65535, found \"70000\"; leave it out \
             for 8080",
        ),
        (
            &["--io", "urin"],
            "--io: expected one of auto, uring, epoll, found \"urin\"; did you mean uring?",
        ),
        (&["doctor", "--port"], "--port: no such flag; `gustnado doctor --help` lists them all"),
    ] {
        assert_eq!(refused(words), line);
    }
    let valueless = refused(&["serve", "--port"]);
    assert!(valueless.starts_with("--port"), "{valueless}");
    assert_eq!(valueless.lines().count(), 1);
}

#[test]
fn what_is_looked_for_first_stands_first_in_help() {
    for flag in ["-h", "--help"] {
        let Ok(Subcommand::Page(text)) = subcommand(&["serve", flag]) else { panic!("no page") };
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        let names =
            ["Examples:", "--port <", "--host <", "--listing[", "--access-log <", "--quiet["];
        let expert = ["Files:", "Address:", "--backlog <", "Engine:", "Pace:"];
        let places: Vec<usize> = names.iter().chain(&expert).map(|part| at(part)).collect();
        assert!(places.is_sorted(), "{places:?}\n{text}");
    }
}

#[test]
fn help_and_version_are_pages() {
    for (words, part) in [
        (&["--help"][..], "doctor"),
        (&["help"], "check"),
        (&["serve", "--help"], "--timeout-graceful-shutdown"),
        (&["serve", "-h"], "--workers <N>"),
        (&["serve", "-h"], "gustnado serve ./public "),
        (&["help", "run"], "`pip install ./python`"),
        (&["--help"], "  run "),
        (&["--version"], "io_uring and epoll"),
    ] {
        match subcommand(words) {
            Ok(Subcommand::Page(text)) => assert!(text.contains(part), "{words:?}\n{text}"),
            other => panic!("expected a page, got {other:?}"),
        }
    }
}
