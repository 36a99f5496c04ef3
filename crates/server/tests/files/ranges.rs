//! Parts of a file. RFC 9110 §14, and If-Range of §13.1.5.

use std::os::unix::fs::FileExt;

use crate::harness::answer::parts;
use crate::harness::client::request;
use crate::harness::folder::{DATE, noise};
use crate::harness::{Answer, Folder, Server, Setup};

on_every_server!(
    one_range_is_that_part,
    a_range_beyond_the_end_is_cut_there,
    a_range_of_nothing_is_told_the_length,
    what_is_no_range_of_bytes_is_ignored,
    only_get_has_ranges,
    a_part_says_what_the_whole_says,
    if_range_gives_the_part_only_of_the_same_file,
    several_ranges_come_as_parts,
    too_many_ranges_are_the_whole_file,
    ranges_of_a_big_file_are_exact,
    ranges_far_into_a_huge_file_are_exact,
    numbers_too_large_for_any_file_harm_nothing,
    a_player_can_seek_on_one_connection,
);

const CONTENT: &str = "0123456789";

fn ten_digits(setup: Setup) -> (Folder, Server) {
    let folder = Folder::new();
    folder.dated("a.txt", CONTENT);
    let server = setup.files(&folder);
    (folder, server)
}

/// The answer to a GET of `/a.txt` with these ranges.
fn ask(server: &Server, ranges: &str) -> Answer {
    server.ask(request("GET", "/a.txt", &format!("Range: {ranges}\r\n")))
}

fn one_range_is_that_part(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    for (range, span, body) in [
        ("bytes=0-4", "0-4", "01234"),
        ("bytes=0-0", "0-0", "0"),
        ("bytes=9-9", "9-9", "9"),
        ("bytes=5-", "5-9", "56789"),
        ("bytes=0-", "0-9", CONTENT),
        ("bytes=-3", "7-9", "789"),
        ("bytes=-10", "0-9", CONTENT),
        ("bytes= 2-3 ", "2-3", "23"),
        ("BYTES=2-3", "2-3", "23"),
        ("bytes=002-003", "2-3", "23"),
    ] {
        let answer = ask(&server, range);
        assert_eq!((answer.status, &*answer.text()), (206, body), "{range}");
        let said = answer.expect_field("content-range");
        assert_eq!(said, format!("bytes {span}/10"), "{range}");
    }
}

fn a_range_beyond_the_end_is_cut_there(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    for (range, span, body) in [
        ("bytes=3-10", "3-9", "3456789"),
        ("bytes=3-100000", "3-9", "3456789"),
        ("bytes=-11", "0-9", CONTENT),
        ("bytes=-100000", "0-9", CONTENT),
    ] {
        let answer = ask(&server, range);
        assert_eq!((answer.status, &*answer.text()), (206, body), "{range}");
        assert_eq!(answer.expect_field("content-range"), format!("bytes {span}/10"), "{range}");
    }
}

fn a_range_of_nothing_is_told_the_length(setup: Setup) {
    let (folder, server) = ten_digits(setup);
    for range in ["bytes=10-", "bytes=10-20", "bytes=99-", "bytes=-0", "bytes=10-,20-"] {
        let answer = ask(&server, range);
        assert_eq!(answer.status, 416, "{range}");
        assert_eq!(answer.field("content-range"), Some("bytes */10"), "{range}");
        assert!(!answer.text().contains(CONTENT), "{range}");
    }
    folder.file("empty.txt", "");
    let answer = server.ask(request("GET", "/empty.txt", "Range: bytes=0-\r\n"));
    assert!([200, 416].contains(&answer.status), "{answer:?}");
}

fn what_is_no_range_of_bytes_is_ignored(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    for range in ["items=0-4", "bytes", "bytes 0-4", "seconds=1-", "0-4", "=0-4"] {
        let answer = ask(&server, range);
        assert_eq!((answer.status, &*answer.text()), (200, CONTENT), "{range}");
    }
    // RFC 9110 §14.2: an invalid set of ranges may be ignored or rejected.
    for range in
        ["bytes=", "bytes=5-3", "bytes=-", "bytes=a-b", "bytes=1-2-3", "bytes=+1-2", "bytes=1 -2"]
    {
        let answer = ask(&server, range);
        assert!([200, 400, 416].contains(&answer.status), "{range}: {answer:?}");
        assert!(answer.status != 200 || answer.text() == CONTENT, "{range}: {answer:?}");
    }
}

fn only_get_has_ranges(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    let mut client = server.connect();
    client.send(request("HEAD", "/a.txt", "Range: bytes=0-4\r\n"));
    let head = client.read_head();
    assert_eq!((head.status, head.field("content-length")), (200, Some("10")));
    let missing = server.ask(request("GET", "/missing", "Range: bytes=0-4\r\n"));
    assert_eq!(missing.status, 404);
}

fn a_part_says_what_the_whole_says(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    let whole = server.get("/a.txt");
    let part = ask(&server, "bytes=2-3");
    for name in ["etag", "last-modified", "content-type"] {
        assert_eq!(part.field(name), whole.field(name), "{name}");
    }
    assert_eq!(part.field("content-length"), Some("2"));
}

fn if_range_gives_the_part_only_of_the_same_file(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    let tag = server.get("/a.txt").expect_field("etag").to_owned();
    let cases = [
        (tag.clone(), 206),
        (DATE.to_owned(), 206),
        (format!("W/{tag}"), 200),
        ("\"other\"".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:36 GMT".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:38 GMT".to_owned(), 200),
        ("nonsense".to_owned(), 200),
    ];
    for (validator, status) in cases {
        let lines = format!("If-Range: {validator}\r\nRange: bytes=2-3\r\n");
        let answer = server.ask(request("GET", "/a.txt", &lines));
        assert_eq!(answer.status, status, "{validator}");
        let body = if status == 206 { "23" } else { CONTENT };
        assert_eq!(answer.text(), body, "{validator}");
    }
    let lines = "If-Range: \"other\"\r\nRange: bytes=50-\r\n";
    assert_eq!(server.ask(request("GET", "/a.txt", lines)).status, 200, "not 416");
}

fn several_ranges_come_as_parts(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    let mut client = server.connect();
    for (ranges, expected) in [
        ("bytes=0-1,4-5", vec![("0-1", "01"), ("4-5", "45")]),
        ("bytes=0-0, -1", vec![("0-0", "0"), ("9-9", "9")]),
        ("bytes=7-,0-1,3-3", vec![("7-9", "789"), ("0-1", "01"), ("3-3", "3")]),
    ] {
        let lines = format!("Range: {ranges}\r\n");
        let answer = client.ask(request("GET", "/a.txt", &lines));
        assert_eq!(answer.status, 206, "{ranges}");
        assert_eq!(answer.field("content-range"), None, "it stands in the parts: {ranges}");
        let found = parts(&answer);
        assert_eq!(found.len(), expected.len(), "{ranges}: {}", answer.text());
        for (part, (span, body)) in found.iter().zip(expected) {
            assert_eq!(String::from_utf8_lossy(&part.body), body, "{ranges}");
            assert_eq!(part.expect_field("content-range"), format!("bytes {span}/10"), "{ranges}");
            assert!(part.expect_field("content-type").starts_with("text/plain"), "{ranges}");
        }
    }
    let one_left = ask(&server, "bytes=0-1,50-60");
    assert_eq!(one_left.status, 206, "the range that fits is answered");
    assert!(one_left.text().contains("01"), "{}", one_left.text());
}

fn too_many_ranges_are_the_whole_file(setup: Setup) {
    let folder = Folder::new();
    let content = "x".repeat(10_000);
    folder.file("a.txt", &content);
    let server = setup.files(&folder);
    let ranges = |count: usize| {
        let list: Vec<_> = (0..count).map(|at| format!("{}-{}", at * 10, at * 10 + 1)).collect();
        format!("bytes={}", list.join(","))
    };
    let sixteen = ask(&server, &ranges(16));
    assert_eq!((sixteen.status, parts(&sixteen).len()), (206, 16));
    for count in [17, 100, 900] {
        let answer = ask(&server, &ranges(count));
        assert_eq!((answer.status, answer.body.len()), (200, 10_000), "{count} ranges");
    }
}

fn ranges_of_a_big_file_are_exact(setup: Setup) {
    let folder = Folder::new();
    let content = noise(4, 700_000);
    folder.file("big.bin", &content);
    let server = setup.files(&folder);
    let mut client = server.connect();
    for (first, last) in [
        (0, 699_999),
        (1, 4_096),
        (4_095, 4_096),
        (65_535, 400_000),
        (699_999, 699_999),
        (5, 600_005),
    ] {
        let line = format!("Range: bytes={first}-{last}\r\n");
        let answer = client.ask(request("GET", "/big.bin", &line));
        assert_eq!(answer.status, 206, "{line}");
        assert!(answer.body == content[first..=last], "other bytes than {first} to {last}");
    }
}

fn ranges_far_into_a_huge_file_are_exact(setup: Setup) {
    let folder = Folder::new();
    let path = folder.hollow("huge.bin", 6_000_000_000);
    let file = std::fs::File::options().write(true).open(path).expect("the huge file");
    file.write_all_at(b"far away", 5_000_000_000).expect("eight bytes within a hole");
    let server = setup.files(&folder);
    let mut client = server.connect();
    for range in ["bytes=5000000000-5000000007", "bytes=5000000000-5000000007"] {
        let answer = client.ask(request("GET", "/huge.bin", &format!("Range: {range}\r\n")));
        assert_eq!((answer.status, &*answer.text()), (206, "far away"));
        let said = answer.expect_field("content-range");
        assert_eq!(said, "bytes 5000000000-5000000007/6000000000");
    }
    client.send(request("HEAD", "/huge.bin", ""));
    assert_eq!(client.read_head().field("content-length"), Some("6000000000"));
}

fn numbers_too_large_for_any_file_harm_nothing(setup: Setup) {
    let (_folder, server) = ten_digits(setup);
    let most = u64::MAX;
    for (range, statuses) in [
        (format!("bytes=0-{most}"), &[206][..]),
        (format!("bytes=-{most}"), &[206]),
        (format!("bytes={most}-"), &[200, 416]),
        (format!("bytes={most}-{most}"), &[200, 416]),
        (format!("bytes=0-{most}0"), &[200, 206, 416]),
        (format!("bytes=-{most}0"), &[200, 206, 416]),
        (format!("bytes={most}0-"), &[200, 416]),
        (format!("bytes=0-{most},1-{most}"), &[200, 206]),
    ] {
        let answer = ask(&server, &range);
        assert!(statuses.contains(&answer.status), "{range}: {answer:?}");
        assert!(answer.status != 206 || answer.text().contains(&CONTENT[1..]), "{range}");
    }
}

fn a_player_can_seek_on_one_connection(setup: Setup) {
    let folder = Folder::new();
    let content = noise(6, 2_000_000);
    folder.file("film.mp4", &content);
    let server = setup.files(&folder);
    let mut client = server.connect();
    let mut at = 0;
    for turn in 0..60 {
        at = (at + 777_777 * turn) % content.len();
        let end = (at + 40_000).min(content.len());
        let line = format!("Range: bytes={at}-{}\r\n", end - 1);
        let answer = client.ask(request("GET", "/film.mp4", &line));
        assert!(answer.body == content[at..end], "other bytes than from {at}");
    }
    assert_eq!(server.stats().connections_accepted, 1);
}
