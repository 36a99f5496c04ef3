//! Files that include others, and values of the environment, as a whole file has them.

use super::*;
use std::ffi::OsString;

/// Writes files, and returns their folder.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
    folder
}

fn of_test(name: &str) -> Option<OsString> {
    match name {
        "PORT_OF_TEST" => Some("81".into()),
        "EMPTY_OF_TEST" => Some("".into()),
        "DB_PASSWORD" => Some("hunter2\"".into()),
        "UPPER_SECRET" => Some("Val{ue".into()),
        _ => None,
    }
}

fn parsed(folder: &Path) -> Result<ConfigFile, SiteError> {
    let path = folder.join("site.toml");
    let text = std::fs::read_to_string(&path).expect("it is there");
    ConfigFile::parse_with(&path, &text, ValueChecks::NONE, &of_test)
}

/// The problems of `site.toml`, without the folder's name.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let folder = written(files);
    let error = parsed(folder.path()).expect_err("something is wrong");
    let shown = format!("{}/", folder.path().display());
    error.to_string().lines().map(|line| line.replace(&shown, "")).collect()
}

const ANSWER: &str = "[[route]]\npath = \"/x\"\nanswer = \"x\"\n";

#[test]
fn what_is_included_counts_as_if_it_stood_in_the_file() {
    let folder = written(&[
        ("site.toml", "include = [\"more.toml\", \"sites/*.toml\"]\nworkers = 1\n"),
        ("more.toml", "slots = 2\n[headers]\nX-A = \"b\"\n"),
        ("sites/b.toml", "[[site]]\nhosts = \"b.org\"\nroot = \"public\"\n"),
        ("sites/a.toml", "[[site]]\nhosts = \"a.org\"\n"),
        ("sites/.hidden.toml", "nonsense"),
    ]);
    let file = parsed(folder.path()).expect("nothing is wrong");
    let config = file.over_defaults().config;
    assert_eq!((config.workers, config.slots, file.sites.len()), (1, 2, 2));
    assert_eq!(file.headers.iter().collect::<Vec<_>>(), [("X-A", "b")]);
    let hosts: Vec<&str> = file.sites.iter().map(|site| site.hosts[0].as_str()).collect();
    assert_eq!(hosts, ["a.org", "b.org"]);
    let origin = file.over_defaults().origin("slots").to_string();
    assert_eq!(origin, format!("file {}:1", folder.path().join("more.toml").display()));
    // Relative paths begin in the folder of the file that has them.
    assert_eq!(file.sites[1].root.as_deref(), Some(&*folder.path().join("sites/public")));
    assert_eq!(file.files.now().len(), 4);
    std::fs::write(folder.path().join("sites/c.toml"), "").expect("written");
    assert!(file.files.now().contains(&folder.path().join("sites/c.toml")));
}

#[test]
fn a_problem_has_the_name_and_line_of_its_own_file() {
    assert_eq!(
        problems(&[
            ("site.toml", "include = \"sites/*.toml\"\nworkres = 1\nslots = 2\n"),
            ("sites/a.toml", "\nslots = 3\nprot = 1\n"),
            ("sites/b.toml", "port = \n"),
        ]),
        [
            "site.toml:2: no key is called \"workres\"; did you mean \"workers\"?",
            "sites/a.toml:2: slots: site.toml:3 sets it already; leave one of them out",
            "sites/a.toml:3: no key is called \"prot\"; did you mean \"port\"?",
            "sites/b.toml:1: string values must be quoted, expected literal string; see \
             https://toml.io",
        ]
    );
    assert_eq!(
        problems(&[
            ("site.toml", &format!("include = \"a.toml\"\nport = 1\n{ANSWER}[headers]\nA = \"b\"")),
            ("a.toml", &format!("listen = [\"a:1\"]\n{ANSWER}[headers]\na = \"c\"")),
        ]),
        [
            "site.toml:2: port: listen in a.toml:1 replaces it; leave one out",
            "a.toml:3: route: site.toml:4 has /x with the same methods; change or leave out one \
             of them",
            "a.toml:6: headers: site.toml:7 sets a already; leave one of them out",
        ]
    );
}

#[test]
fn files_that_are_not_there_twice_or_in_a_circle_are_named() {
    assert_eq!(
        problems(&[("site.toml", "\ninclude = [\"none.toml\", \"*.none\", \"\"]\n")]),
        [
            "site.toml:2: include: none.toml: no such file; name one that is there",
            "site.toml:2: include: expected a file such as sites/a.toml, or sites/*.toml, found \
             \"\"",
        ]
    );
    assert_eq!(
        problems(&[
            ("site.toml", "include = \"a.toml\""),
            ("a.toml", "\ninclude = \"b.toml\""),
            ("b.toml", "include = \"site.toml\""),
        ]),
        ["b.toml:1: include: site.toml includes itself (site.toml -> a.toml -> b.toml -> \
             site.toml); leave out one of these"]
    );
    assert_eq!(
        problems(&[("site.toml", "include = [\"a.toml\",\n\"*a.toml\"]"), ("a.toml", "")]),
        ["site.toml:2: include: a.toml is included in line 1 already; leave one out"]
    );
}

#[test]
fn depth_and_number_of_files_are_bounded() {
    let names: Vec<String> = (0..10).map(|number| format!("{number}.toml")).collect();
    let texts: Vec<String> = (1..11).map(|number| format!("include = \"{number}.toml\"")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    files.push(("site.toml", "include = \"0.toml\""));
    let found = problems(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("7.toml:1: include: expected files at most 8 deep"), "{found:?}");
    let names: Vec<String> = (0..1_100).map(|number| format!("sites/{number}.toml")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    files.push(("site.toml", "include = \"sites/*\""));
    let found = problems(&files);
    assert_eq!(
        found,
        ["site.toml:1: include: expected at most 1000 files, found more; merge some \
                        of them"]
    );
}

#[test]
fn values_of_the_environment_are_read_and_their_mistakes_have_lines() {
    let folder = written(&[(
        "site.toml",
        "port = \"${PORT_OF_TEST}\"\nforwarded-allow-ips = \"${NONE:-10.0.0.1, 10.0.0.2}\"\n\
         server-name = \"${NONE:-x}\"\nhidden = \"${NONE:-true}\"\n[[route]]\npath = \"/\"\n\
         answer = \"$${PORT_OF_TEST}\"\nstatus = \"${NONE:-410}\"\n",
    )]);
    let file = parsed(folder.path()).expect("nothing is wrong");
    let settings = file.over_defaults();
    assert_eq!((settings.config.port, settings.config.routes.hidden), (81, true));
    assert_eq!(settings.config.forwarded_allow_ips, ["10.0.0.1", "10.0.0.2"]);
    let origin = settings.origin("port").to_string();
    assert!(origin.ends_with("site.toml:1, environment PORT_OF_TEST"), "{origin}");
    let effective = ConfigFile::effective(Some(&file), &settings);
    assert!(effective.contains("answer = \"$${PORT_OF_TEST}\"\nstatus = 410\n"), "{effective}");
    assert_eq!(
        problems(&[(
            "site.toml",
            "port = \"${NONE}\"\n\"${X}\" = 1\n[headers]\nA = \"x\"\nB = \"${NONE\"\n"
        )]),
        [
            "site.toml:1: the variable NONE is not set; set it, or write ${NONE:-default}",
            "site.toml:5: expected } behind ${; close it, or write $${ for ${ itself",
        ]
    );
    // Never in keys.
    let found = problems(&[("site.toml", "\"${PORT_OF_TEST}\" = 1\n")]);
    assert!(found[0].contains("no key is called \"${PORT_OF_TEST}\""), "{found:?}");
}

/// No network would be every network, and no file of passwords no password.
#[test]
fn a_variable_that_is_empty_opens_nothing() {
    let text = "allow = [\"${EMPTY_OF_TEST}\"]\ndeny = [\"10.0.0.1\", \"${EMPTY_OF_TEST}\"]\n\
                forbidden = \"${EMPTY_OF_TEST}\"\nbasic-auth = \"${EMPTY_OF_TEST}\"\n\
                signed-urls = \"${EMPTY_OF_TEST:-}\"\ntls-client-ca = \"\"\n";
    let found = problems(&[("site.toml", text)]);
    assert_eq!(found.len(), 6, "{found:?}");
    for (line, (found, name)) in found
        .iter()
        .zip(["allow", "deny", "forbidden", "basic-auth", "signed-urls", "tls-client-ca"])
        .enumerate()
    {
        assert!(
            found.starts_with(&format!("site.toml:{}: {name}: expected ", line + 1)),
            "{found}"
        );
    }
}

#[test]
fn a_secret_is_neither_in_what_is_in_effect_nor_in_a_problem() {
    let text = "server-name = \"${DB_PASSWORD}\"\n[headers]\nX-Key = \"k=${DB_PASSWORD}\"\n";
    let folder = written(&[("site.toml", text)]);
    let file = parsed(folder.path()).expect("nothing is wrong");
    let settings = file.over_defaults();
    assert_eq!(settings.config.server_name, "hunter2\"");
    let effective = ConfigFile::effective(Some(&file), &settings);
    assert!(!effective.contains("hunter2"), "{effective}");
    assert!(effective.contains("server-name = \"${DB_PASSWORD}\"  # file "), "{effective}");
    assert!(effective.contains("\"X-Key\" = \"k=${DB_PASSWORD}\"\n"), "{effective}");
    let again =
        ConfigFile::parse_with(Path::new("/x/y.toml"), &effective, ValueChecks::NONE, &of_test)
            .expect("it can be read again");
    assert_eq!(again.over_defaults().config, settings.config);
    assert_eq!(again.headers, file.headers);
    let found =
        problems(&[("site.toml", "port = \"${DB_PASSWORD}\"\nworkers = \"${DB_PASSWORD}\"")]);
    assert!(found.len() == 2 && !found.concat().contains("hunter2"), "{found:?}");
    let hosts = "[[site]]\nhosts = \"${UPPER_SECRET}/\"\n[[route]]\npath = \"/x\"\n\
                 redirect = \"/${UPPER_SECRET}}\"\n";
    let shown = problems(&[("site.toml", hosts)]).concat();
    assert!(shown.contains("${UPPER_SECRET}") && !shown.to_lowercase().contains("val"), "{shown}");
    assert!(found[0].contains("found \"${DB_PASSWORD}\""), "{found:?}");
}

#[test]
fn a_folder_has_no_named_parts_and_a_site_has_hosts() {
    let text = "[[route]]\npath = \"/a/{id}\"\nfolder = \"/\"\n[[site]]\nhosts = []\n\
                [[error-page]]\nfile = \"/\"\n[error-page]\n";
    let site = "[[route]]\npath = \"/a/{*id}\"\nfolder = \"/\"\n[[site]]\nhosts = []\n";
    assert_eq!(
        problems(&[("site.toml", site)]),
        [
            "site.toml:2: route.path: expected a path without named parts for a folder, found \
             \"/a/{*id}\"; a folder has all that lies beneath its path, such as /static",
            "site.toml:4: site.hosts: expected a host such as \"example.org\", found none; add one",
        ]
    );
    let found = problems(&[("site.toml", text)]);
    assert_eq!(found, ["site.toml:8: error-page: line 6 sets it already; leave one of them out"]);
}

#[test]
fn what_is_in_effect_names_what_pages_need() {
    let route = "[[route]]\npath = \"/x\"\nanswer = \"x\"\npreload = [\"/app.css; as=style\"]\n";
    let folder = written(&[("site.toml", route)]);
    let file = parsed(folder.path()).expect("it is right");
    let effective = ConfigFile::effective(Some(&file), &file.over_defaults());
    let link = "preload = [\"</app.css>; rel=preload; as=style\"]";
    assert!(effective.contains(link), "{effective}");
}
