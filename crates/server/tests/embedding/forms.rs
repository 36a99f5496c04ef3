//! Forms: pairs, parts, files that go to the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gustnado::forms::{FormData, FormError, FormLimits, Upload};
use gustnado::{Request, Routes, blocking, route};

use crate::harness::client::{post_chunked, post_of, request};
use crate::harness::folder::noise;
use crate::harness::{Server, Setup, wait_until};

on_every_server!(
    pairs_of_a_form_are_read_in_each_kind,
    a_form_of_another_type_or_size_is_refused,
    parts_stream_as_they_come,
    parts_that_are_not_read_are_passed_over,
    a_form_with_files_is_read_in_each_kind,
    large_files_go_to_the_disk_and_are_deleted,
    each_limit_of_a_form_is_kept,
    a_malformed_form_is_refused_and_leaves_nothing,
    a_client_that_goes_leaves_no_file,
    a_handler_that_panics_leaves_no_file,
    a_file_can_be_kept,
);

const URLENCODED: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data; boundary=\"-- gust\"";

/// A part; with a file name, a file.
fn part(name: &str, file_name: Option<&str>, data: &[u8]) -> Vec<u8> {
    let file = file_name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
    let head = format!("---- gust\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n");
    let kind = if file_name.is_some() { "Content-Type: image/png\r\n" } else { "" };
    [head.as_bytes(), kind.as_bytes(), b"\r\n", data, b"\r\n"].concat()
}

fn form_of(parts: &[Vec<u8>]) -> Vec<u8> {
    [&parts.concat(), b"---- gust--\r\n".as_slice()].concat()
}

fn pairs_of_a_form_are_read_in_each_kind(setup: Setup) {
    fn told(form: &gustnado::forms::Form) -> String {
        form.iter().flat_map(|(name, value)| [name, "=", value, ";"]).collect()
    }
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.form().map(|form| told(&form)))
        .post("/pool", blocking(|request: Request| request.form().map(|form| told(&form))))
        .post("/task", async |mut request: Request| {
            request.read_form(&FormLimits::default()).await.map(|form| told(&form))
        });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    for path in ["/inline", "/pool", "/task"] {
        let body = b"name=J%C3%BCrgen+S.&empty=&a&a=2";
        for sent in [post_of(path, URLENCODED, body), post_chunked(path, URLENCODED, body)] {
            assert_eq!(client.ask(sent).text(), "name=J\u{fc}rgen S.;empty=;a=;a=2;", "{path}");
        }
        let kind = format!("{URLENCODED}; charset=UTF-8");
        assert_eq!(client.ask(post_of(path, &kind, b"")).text(), "");
    }
}

fn a_form_of_another_type_or_size_is_refused(setup: Setup) {
    fn small() -> FormLimits {
        FormLimits { fields_max: 3, value_bytes_max: 20, ..FormLimits::default() }
    }
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.form().map(|form| form.len().to_string()))
        .post("/data", |request: &Request| request.form_data().map(|_| "a form"))
        .post("/task", async |mut request: Request| {
            request.read_form(&small()).await.map(|form| form.len().to_string())
        });
    let server = Server::routes(setup.config(), routes);
    let status = |path: &str, kind: &str, body: &[u8]| server.ask(post_of(path, kind, body)).status;
    for path in ["/inline", "/task"] {
        assert_eq!(status(path, "application/json", b"{}"), 415, "{path}");
        assert_eq!(server.ask(request("POST", path, "Content-Length: 0\r\n")).status, 415);
        assert_eq!(status(path, URLENCODED, b"a&b&c"), 200, "{path}");
    }
    assert_eq!(status("/data", URLENCODED, b"a"), 415);
    assert_eq!(status("/data", "multipart/form-data", b"a"), 400, "no boundary");
    assert_eq!(status("/task", URLENCODED, b"a&b&c&d"), 413);
    assert_eq!(status("/task", URLENCODED, &[b'a'; 21]), 413);
    assert_eq!(server.ask(post_chunked("/task", URLENCODED, &[b'a'; 21])).status, 413);
    assert_eq!(status("/inline", URLENCODED, "a&".repeat(1_001).as_bytes()), 413);
}

async fn stream_parts(mut request: Request) -> Result<String, FormError> {
    let mut form = request.multipart(&FormLimits::default())?;
    let mut told = Vec::new();
    while let Some(part) = form.next().await {
        let mut part = part?;
        let (mut bytes, mut pieces) = (0, 0);
        while let Some(piece) = part.next().await {
            bytes += piece?.len();
            pieces += 1;
        }
        assert!(pieces > 0 || bytes == 0);
        let kind = part.content_type().unwrap_or("-");
        told.push(format!("{} {:?} {kind} {bytes};", part.name(), part.file_name()));
    }
    Ok(told.concat())
}

fn parts_stream_as_they_come(setup: Setup) {
    let routes = Routes::new().route("/", route().limit_body_bytes(50 << 20).post(stream_parts));
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    let big = noise(1, 3_000_000);
    let body = form_of(&[
        part("title", None, "\u{e4}".as_bytes()),
        part("file", Some("a.png"), &big),
        part("none", Some(""), b""),
    ]);
    let wanted =
        "title None - 2;file Some(\"a.png\") image/png 3000000;none Some(\"\") image/png 0;";
    for _ in 0..2 {
        assert_eq!(client.ask(post_of("/", MULTIPART, &body)).text(), wanted);
    }
    // Cut at every byte of a small one.
    let body = form_of(&[part("a", None, b"\r\n---- gus"), part("b", Some("x"), b"--")]);
    let wanted = "a None - 10;b Some(\"x\") image/png 2;";
    assert_eq!(client.ask(post_chunked("/", MULTIPART, &body)).text(), wanted);
    let sent = post_of("/", MULTIPART, &body);
    for at in (0..sent.len()).step_by(11) {
        client.send_cut(&sent, at);
        assert_eq!(client.read_answer().text(), wanted, "cut at {at}");
    }
}

fn parts_that_are_not_read_are_passed_over(setup: Setup) {
    let routes = Routes::new().post("/", async |mut request: Request| {
        let mut form = request.multipart(&FormLimits::default())?;
        let mut names = String::new();
        while let Some(part) = form.next().await {
            let mut part = part?;
            if part.name() == "half" {
                part.next().await.transpose()?;
            }
            names += part.name();
        }
        Ok::<_, FormError>(names)
    });
    let server = Server::routes(setup.config(), routes);
    let body = form_of(&[
        part("half", None, &noise(2, 100_000)),
        part("-", Some("f"), &noise(3, 100_000)),
        part("last", None, b""),
    ]);
    assert_eq!(server.ask(post_of("/", MULTIPART, &body)).text(), "half-last");
}

fn told(form: &FormData) -> String {
    let values: String = form.values().flat_map(|(name, value)| [name, "=", value, ";"]).collect();
    let file = |file: &Upload| {
        let read = file.read().expect("it can be read");
        assert_eq!(read.len() as u64, file.length());
        let sum: u64 = read.iter().map(|byte| u64::from(*byte)).sum();
        let place = if file.path().is_some() { "disk" } else { "memory" };
        format!("{}/{}/{}/{sum}/{place};", file.name(), file.file_name(), file.length())
    };
    values + &form.files().iter().map(file).collect::<String>()
}

fn a_form_with_files_is_read_in_each_kind(setup: Setup) {
    let routes = Routes::new()
        .post("/inline", |request: &Request| request.form_data().map(|form| told(&form)))
        .post("/pool", blocking(|request: Request| request.form_data().map(|form| told(&form))))
        .post("/task", async |mut request: Request| {
            request.read_form_data(&FormLimits::default()).await.map(|form| told(&form))
        });
    let server = Server::routes(setup.config(), routes);
    let mut client = server.connect();
    let body = form_of(&[
        part("a", None, "\u{e4}".as_bytes()),
        part("f", Some("x.png"), b"\0\xff"),
        part("unchosen", Some(""), b""),
        part("a", None, b""),
        part("f", Some("y.png"), b""),
    ]);
    for path in ["/inline", "/pool", "/task"] {
        for sent in [post_of(path, MULTIPART, &body), post_chunked(path, MULTIPART, &body)] {
            let wanted = "a=\u{e4};a=;f/x.png/2/255/memory;f/y.png/0/0/memory;";
            assert_eq!(client.ask(sent).text(), wanted, "{path}");
        }
        let not_text = form_of(&[part("a", None, b"\xff")]);
        assert_eq!(client.ask(post_of(path, MULTIPART, &not_text)).status, 400);
    }
}

/// Limits with a folder of their own.
fn limits_in(folder: &Path) -> FormLimits {
    FormLimits { folder: Some(folder.to_path_buf()), ..FormLimits::default() }
}

fn files_in(folder: &Path) -> usize {
    fs::read_dir(folder).expect("the folder is there").count()
}

/// Reads forms with `limits`, says what was in them.
fn reading(limits: FormLimits) -> Routes {
    let post = move |mut request: Request| {
        let limits = limits.clone();
        async move { request.read_form_data(&limits).await.map(|form| told(&form)) }
    };
    Routes::new().route("/", route().limit_body_bytes(50 << 20).post(post))
}

fn large_files_go_to_the_disk_and_are_deleted(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::routes(setup.config(), reading(limits_in(folder.path())));
    let mut client = server.connect();
    let (big, small) = (noise(4, 2_000_000), vec![1; 60_000]);
    let sum: u64 = big.iter().map(|byte| u64::from(*byte)).sum();
    // The second small one has no room beside the first.
    let body = form_of(&[
        part("f", Some("1"), &small),
        part("f", Some("2"), &big),
        part("f", Some("3"), &small),
        part("f", Some("4"), &small[..40_000]),
    ]);
    for _ in 0..3 {
        assert_eq!(
            client.ask(post_of("/", MULTIPART, &body)).text(),
            format!(
                "f/1/60000/60000/memory;f/2/2000000/{sum}/disk;f/3/60000/60000/disk;\
                 f/4/40000/40000/memory;"
            )
        );
    }
    wait_until("all files are deleted", || files_in(folder.path()) == 0);
}

fn each_limit_of_a_form_is_kept(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let limits = FormLimits {
        fields_max: 3,
        value_bytes_max: 10,
        file_bytes_max: 500_000,
        memory_bytes_max: 1_000,
        disk_bytes_max: 600_000,
        part_head_bytes_max: 200,
        ..limits_in(folder.path())
    };
    let server = Server::routes(setup.config(), reading(limits));
    let file = |bytes| part("f", Some("x"), &vec![1; bytes]);
    let long_name = "n".repeat(300);
    for (parts, status) in [
        (vec![part("a", None, b"123456789")], 200),
        (vec![part("a", None, b"1234567890")], 413),
        (vec![part("a", None, b"12345"), part("b", None, b"12345")], 413),
        (vec![part("a", None, b""); 3], 200),
        (vec![part("a", None, b""); 4], 413),
        (vec![file(500_000)], 200),
        (vec![file(500_001)], 413),
        (vec![file(400_000), file(200_000)], 200),
        (vec![file(400_000), file(200_001)], 413),
        (vec![part("a", Some(&long_name), b"")], 413),
    ] {
        let answer = server.ask(post_of("/", MULTIPART, &form_of(&parts)));
        assert_eq!(answer.status, status, "{} parts", parts.len());
    }
    wait_until("all files are deleted", || files_in(folder.path()) == 0);
    let nowhere = limits_in(&folder.path().join("none"));
    let server = Server::routes(setup.config(), reading(nowhere));
    let answer = server.ask(post_of("/", MULTIPART, &form_of(&[file(200_000)])));
    assert_eq!(answer.status, 500, "there is no such folder");
}

fn a_malformed_form_is_refused_and_leaves_nothing(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let routes = reading(limits_in(folder.path()))
        .post("/inline", |request: &Request| request.form_data().map(|form| told(&form)));
    let server = Server::routes(setup.config(), routes);
    let whole = form_of(&[part("f", Some("x"), &vec![1; 300_000])]);
    for body in [
        &whole[..200_000],
        &whole[..whole.len() - 4],
        b"no boundary",
        b"---- gust\r\nContent-Type: text/plain\r\n\r\nno name\r\n---- gust--",
        b"---- gust!\r\n",
        b"",
    ] {
        for path in ["/", "/inline"] {
            let answer = server.ask(post_of(path, MULTIPART, body));
            assert_eq!(answer.status, 400, "{path} {} bytes", body.len());
        }
    }
    wait_until("all files are deleted", || files_in(folder.path()) == 0);
}

fn a_client_that_goes_leaves_no_file(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::routes(setup.config(), reading(limits_in(folder.path())));
    let whole = post_of("/", MULTIPART, &form_of(&[part("f", Some("x"), &noise(5, 1_000_000))]));
    for is_reset in [true, false] {
        let mut client = server.connect();
        client.send(&whole[..600_000]);
        wait_until("the file is there", || files_in(folder.path()) == 1);
        if is_reset {
            client.reset();
        } else {
            drop(client);
        }
        wait_until("the file is deleted", || files_in(folder.path()) == 0);
    }
    server.wait_until_empty();
}

fn a_handler_that_panics_leaves_no_file(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let limits = limits_in(folder.path());
    let seen = Arc::new(AtomicUsize::new(0));
    let (noted, place) = (Arc::clone(&seen), folder.path().to_path_buf());
    let panics = move |mut request: Request| {
        let (limits, noted, place) = (limits.clone(), Arc::clone(&noted), place.clone());
        async move {
            let form = request.read_form_data(&limits).await?;
            noted.fetch_add(files_in(&place), Ordering::SeqCst);
            assert!(form.files().is_empty(), "a fault of the handler's own");
            Ok::<_, FormError>("no file")
        }
    };
    let server = Server::routes(setup.config(), Routes::new().post("/", panics));
    let body = form_of(&[part("f", Some("x"), &noise(6, 300_000))]);
    let mut client = server.connect();
    assert_eq!(client.ask(post_of("/", MULTIPART, &body)).status, 500);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    wait_until("the file is deleted", || files_in(folder.path()) == 0);
}

fn a_file_can_be_kept(setup: Setup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept: PathBuf = folder.path().join("kept");
    fs::create_dir(&kept).expect("the folder is writable");
    let limits = limits_in(folder.path());
    let to = kept.clone();
    let keep = move |mut request: Request| {
        let (limits, to) = (limits.clone(), to.clone());
        async move {
            for (number, file) in
                request.read_form_data(&limits).await?.into_files().into_iter().enumerate()
            {
                let name = file.safe_file_name().unwrap_or_default();
                let path = to.join(format!("{number}-{name}"));
                if number % 2 == 0 {
                    file.save(&path).await?;
                } else {
                    file.persist(&path)?;
                }
            }
            Ok::<_, FormError>("kept")
        }
    };
    let server = Server::routes(setup.config(), Routes::new().post("/", keep));
    let big = noise(7, 300_000);
    let body = form_of(&[
        part("f", Some("../../big"), &big),
        part("f", Some("big"), &big),
        part("f", Some("small"), b"small"),
        part("f", Some("small"), b""),
    ]);
    for _ in 0..2 {
        assert_eq!(server.ask(post_of("/", MULTIPART, &body)).text(), "kept");
        let read = |name: &str| fs::read(kept.join(name)).expect("it was kept");
        assert!(read("0-big") == big && read("1-big") == big);
        assert_eq!((read("2-small"), read("3-small")), (b"small".to_vec(), Vec::new()));
    }
    assert_eq!((files_in(&kept), files_in(folder.path())), (4, 1), "nothing else is left");
}
