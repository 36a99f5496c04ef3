//! Files that are included, and those that cannot be.

use super::*;

#[test]
fn included_files_are_read_and_bounded() {
    let read = |path: &Path| match path.to_str() {
        Some("/etc/nginx/snippets/a.conf") => Ok("root /srv/a;".to_owned()),
        Some("/etc/nginx/loop.conf") => Ok("include loop.conf;".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let text = "server { include snippets/a.conf; }";
    assert_eq!(served(&parsed(&imported_with(text, &read)).main, "/x"), "/srv/a/x");
    let error = import(Path::new("/etc/nginx/nginx.conf"), "include loop.conf;", &read)
        .expect_err("it includes itself");
    assert!(error.contains("8 deep"), "{error}");
    for (text, part) in [("server {", "expected }"), ("events { }", "expected a server")] {
        let error = import(Path::new("/x/n.conf"), text, &read).expect_err(text);
        assert!(error.starts_with("/x/n.conf") && error.contains(part), "{error}");
    }
}

#[test]
fn what_cannot_be_listed_closes_what_it_stands_in_and_what_is_not_there_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(path, text).expect("written");
    };
    file("snippets/a/deny.conf", "deny all;");
    file("empty/x.txt", "");
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).expect("a link");
    for (pattern, is_closed) in [
        ("snippets/**/*.conf", true), // Found, as glob(3) reads it.
        ("snippets/**.conf", false),
        ("snippets/*/d**y.conf", true),
        ("loop/*.conf", true),
        ("l*/*.conf", true),
        ("snippets/[a]/deny.conf", true),
        ("snippets/\\*/deny.conf", true),
        ("none.conf", true),
        ("none/*.conf", false),
        ("empty/*.conf", false),
    ] {
        let text = format!("server {{ root /srv; location /a/ {{ include {pattern}; }} }}");
        file("nginx.conf", &text);
        let import = import_file(&folder.path().join("nginx.conf")).expect("it is read");
        let expected = if is_closed { "403 403 Forbidden" } else { "/srv/a/x" };
        let found = served(&parsed(&import).main, "/a/x");
        assert_eq!(found, expected, "{pattern}\n{}", reasons(&import));
        let is_told = !import.left.is_empty() || !is_closed || pattern.contains("**");
        assert!(is_told, "{pattern}");
    }
    file("nginx.conf", "include loop/*.conf; http { server { root /srv; } }");
    let import = import_file(&folder.path().join("nginx.conf")).expect("it is read");
    assert!(reasons(&import).contains("include loop/*.conf: the file cannot be read: left out"));
}

#[test]
fn a_folder_that_is_not_there_is_told_by_its_location() {
    let text = "server { root /srv;\nlocation /a/ { root /none; }\nlocation /d/ { alias \
                /b/; }\nlocation /c/ { autoindex on; } }";
    let is_folder = |path: &Path| !path.starts_with("/none") && !path.starts_with("/b");
    let read = |_: &Path| Err("no such file".to_owned());
    let found = super::super::imported(Path::new("/n.conf"), text, &read, &is_folder);
    let expected = [
        "/n.conf:2: location /a/: there is no folder /none/a here; without it no server starts",
        "/n.conf:3: location /d/: there is no folder /b/ here; without it no server starts",
    ];
    assert_eq!(reasons(&found.expect("it is read")).lines().collect::<Vec<_>>(), expected);
    assert!(imported(text).left.is_empty(), "the disk is not looked at");
}
