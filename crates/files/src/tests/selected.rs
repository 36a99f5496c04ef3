//! Conditions and ranges on real files, small and large, cached and not.

use super::*;

/// Returns a small and a large file that differ in nothing else: the responses must be alike.
fn both() -> (Scene, [(&'static str, Vec<u8>); 2]) {
    let scene = Scene::new();
    let large: Vec<u8> = (0..20_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let contents = [("/small.bin", large[..1_000].to_vec()), ("/large.bin", large)];
    for (path, content) in &contents {
        scene.write(&path[1..], content);
    }
    (scene, contents)
}

#[test]
fn the_conditions_lead_to_their_answers() {
    let (scene, contents) = both();
    for (path, _) in contents {
        let first = scene.get(path);
        let (tag, date) = (first.etag(), first.field("Last-Modified").expect("a date"));
        let old = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (fields, status) in [
            (vec![format!("If-None-Match: {tag}")], 304),
            (vec![format!("If-None-Match: W/{tag}")], 304),
            (vec!["If-None-Match: *".into()], 304),
            (vec!["If-None-Match: \"x\"".into(), format!("If-None-Match: {tag}")], 304),
            (vec!["If-None-Match: \"x\"".into()], 200),
            (vec!["If-None-Match: \"x\"".into(), format!("If-Modified-Since: {date}")], 200),
            (vec![format!("If-Modified-Since: {date}")], 304),
            (vec![format!("If-Modified-Since: {old}")], 200),
            (vec!["If-Modified-Since: soon".into()], 200),
            (vec![format!("If-Match: {tag}")], 200),
            (vec!["If-Match: \"x\"".into(), format!("If-Match: \"y\", {tag}")], 200),
            (vec!["If-Match: *".into()], 200),
            (vec![format!("If-Match: W/{tag}")], 412),
            (vec!["If-Match: \"x\"".into()], 412),
            (vec!["If-Match: \"x\"".into(), format!("If-None-Match: {tag}")], 412),
            (vec![format!("If-Unmodified-Since: {old}")], 412),
            (vec![format!("If-Unmodified-Since: {date}")], 200),
            (vec![format!("If-Match: {tag}"), format!("If-Unmodified-Since: {old}")], 200),
            (vec!["If-Match: \"x\"".into(), "Range: bytes=0-1".into()], 412),
            (vec![format!("If-None-Match: {tag}"), "Range: bytes=0-1".into()], 304),
            (vec![format!("If-Match: {tag}"), "Range: bytes=0-1".into()], 206),
            (vec![format!("If-Range: {tag}")], 200),
        ] {
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            for method in ["GET", "HEAD"] {
                let is_ranged = status == 206 && method == "HEAD";
                let expected = if is_ranged { 200 } else { status };
                let sent = scene.send(method, path, &fields);
                assert_eq!(sent.status(), expected, "{method} {path} {fields:?}");
            }
        }
    }
}

#[test]
fn a_304_has_the_tag_and_no_body() {
    let (scene, contents) = both();
    for (path, _) in contents {
        let first = scene.get(path);
        let sent = scene.get_with(path, &[&format!("If-None-Match: {}", first.etag())]);
        assert_eq!((sent.status(), sent.body.len(), sent.file_parts), (304, 0, 0));
        assert_eq!(sent.field("ETag"), Some(first.etag()));
        assert_eq!(sent.field("Content-Length"), None);
        assert_eq!(sent.field("Content-Type"), None);
    }
}

#[test]
fn conditions_do_not_count_where_nothing_is_found() {
    let scene = Scene::new();
    scene.write("docs/page", "x");
    for (path, status) in [("/none", 404), ("/docs", 301), ("/%zz", 400)] {
        for field in ["If-Match: \"x\"", "If-None-Match: *", "Range: bytes=0-1"] {
            assert_eq!(scene.get_with(path, &[field]).status(), status, "{path} {field}");
        }
    }
}

#[test]
fn one_range_is_answered_with_its_bytes() {
    let (scene, contents) = both();
    for (path, content) in contents {
        let size = content.len();
        for (range, start, end) in [
            ("0-0", 0, 1),
            ("0-499", 0, 500),
            ("500-", 500, size),
            ("-100", size - 100, size),
            ("-99999", 0, size),
            ("900-99999", 900, size),
            ("99999-,5-6", 5, 7),
        ] {
            let sent = scene.get_with(path, &[&format!("Range: bytes={range}")]);
            assert_eq!(sent.status(), 206, "{path} {range}");
            assert!(sent.body == content[start..end], "{path} {range}");
            let expected = format!("bytes {start}-{}/{size}", end - 1);
            assert_eq!(sent.field("Content-Range"), Some(expected.as_str()));
            assert_eq!(sent.field("Content-Length"), Some((end - start).to_string().as_str()));
            assert_eq!(sent.field("ETag"), scene.get(path).field("ETag"));
            assert_eq!(sent.field("Content-Type"), Some("application/octet-stream"));
        }
    }
}

#[test]
fn a_range_that_touches_nothing_is_refused_with_the_size() {
    let (scene, contents) = both();
    for (path, content) in contents {
        for range in ["99999-", "-0"] {
            let sent = scene.get_with(path, &[&format!("Range: bytes={range}")]);
            let size = format!("bytes */{}", content.len());
            assert_eq!((sent.status(), sent.field("Content-Range")), (416, Some(size.as_str())));
        }
    }
}

#[test]
fn a_range_that_is_not_understood_is_ignored() {
    let (scene, contents) = both();
    let many = (0..17).map(|at| format!("{at}-{at}")).collect::<Vec<_>>().join(",");
    for (path, content) in contents {
        for range in ["bytes=5-1", "lines=0-1", "bytes=x", "bytes=0-,0-", &format!("bytes={many}")]
        {
            let sent = scene.get_with(path, &[&format!("Range: {range}")]);
            assert_eq!((sent.status(), sent.body.len()), (200, content.len()), "{range}");
        }
    }
}

#[test]
fn several_ranges_come_as_parts() {
    let (scene, contents) = both();
    for (path, content) in contents {
        let sent = scene.get_with(path, &["Range: bytes=0-4, -3 ,10-10"]);
        assert_eq!(sent.status(), 206);
        assert_eq!(sent.field("Content-Length"), Some(sent.body.len().to_string().as_str()));
        let boundary = sent
            .field("Content-Type")
            .and_then(|value| value.strip_prefix("multipart/byteranges; boundary="))
            .expect("a boundary");
        let size = content.len();
        let mut expected = Vec::new();
        for (start, end) in [(0, 5), (size - 3, size), (10, 11)] {
            let head = format!(
                "\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\
                 Content-Range: bytes {start}-{}/{size}\r\n\r\n",
                end - 1
            );
            expected.extend_from_slice(head.as_bytes());
            expected.extend_from_slice(&content[start..end]);
        }
        expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        assert!(sent.body == expected, "{}", String::from_utf8_lossy(&sent.body));
        assert_eq!(sent.field("Content-Range"), None);
    }
}

#[test]
fn sixteen_ranges_are_parts_and_each_answer_has_its_own_boundary() {
    let (scene, _) = both();
    let sixteen = (0..16).map(|at| format!("{}-{}", at * 2, at * 2)).collect::<Vec<_>>().join(",");
    let sent = scene.get_with("/large.bin", &[&format!("Range: bytes={sixteen}")]);
    assert_eq!((sent.status(), sent.file_parts), (206, 16));
    let again = scene.get_with("/large.bin", &[&format!("Range: bytes={sixteen}")]);
    assert_ne!(sent.field("Content-Type"), again.field("Content-Type"));
}

#[test]
fn if_range_decides_whether_the_range_counts() {
    let (scene, contents) = both();
    for (path, _) in contents {
        let first = scene.get(path);
        let (tag, date) = (first.etag(), first.field("Last-Modified").expect("a date"));
        for (value, status) in [
            (tag, 206),
            (date, 206),
            (&format!("W/{tag}"), 200),
            ("\"x\"", 200),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ] {
            let fields = ["Range: bytes=0-1", &format!("If-Range: {value}")];
            assert_eq!(scene.get_with(path, &fields).status(), status, "{value}");
        }
    }
}
