//! What must hold for every form of parts: however it is cut, whatever it is; and multer, another
//! decoder, reads the same.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;
use gustnado_http::multipart::{MultipartDecoder, MultipartError, MultipartEvent, MultipartLimits};
use proptest::prelude::*;
use proptest::sample::select;

const LIMITS: MultipartLimits = MultipartLimits { parts_max: 6, head_bytes_max: 300 };
const BOUNDARY: &str = "bound";

/// Name, file name, data.
type Part = (String, Option<String>, Vec<u8>);

/// The parts that were begun, and how that ended.
type Verdict = (Vec<Part>, Result<bool, MultipartError>);

/// Decodes bytes that come in pieces of these sizes, again and again.
fn read(bytes: &[u8], sizes: &[usize], limits: MultipartLimits) -> Verdict {
    let mut decoder = MultipartDecoder::new(BOUNDARY.as_bytes(), limits).expect("a good boundary");
    let (mut parts, mut at, mut there) = (Vec::<Part>::new(), 0, 0);
    let mut sizes = sizes.iter().cycle();
    loop {
        let used = match decoder.decode(&bytes[at..there]) {
            Err(error) => return (parts, Err(error)),
            Ok(MultipartEvent::End) => return (parts, Ok(true)),
            Ok(MultipartEvent::NeedMore) if there == bytes.len() => return (parts, Ok(false)),
            Ok(MultipartEvent::NeedMore) => {
                // What is held is bounded: a delimiter, or a head.
                assert!(there - at <= limits.head_bytes_max, "it holds {} bytes", there - at);
                there = bytes.len().min(there + sizes.next().expect("it cycles"));
                continue;
            }
            Ok(MultipartEvent::Head(len, head)) => {
                let file_name = head.file_name().map(str::to_owned);
                parts.push((head.name().to_owned(), file_name, Vec::new()));
                len
            }
            Ok(MultipartEvent::Data(len)) => {
                let data = &bytes[at..at + len];
                parts.last_mut().expect("data follows a head").2.extend_from_slice(data);
                len
            }
            Ok(MultipartEvent::Skip(len) | MultipartEvent::PartEnd(len)) => len,
        };
        assert!(used > 0, "no progress");
        at += used;
        assert!(at <= there);
    }
}

fn written(parts: &[Part]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, file_name, data) in parts {
        let file = file_name.as_ref().map(|name| format!("; filename=\"{name}\""));
        let file = file.unwrap_or_default();
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n"
        );
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    bytes
}

/// Data that looks like its end, but is not.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "\r",
        "\n",
        "\r\n",
        "-",
        "--",
        "\r\n--",
        "\r\n--boun",
        "bound",
        "--bound",
        "\r\n\r\n",
        "x",
        "\0",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes()).prop_filter(
        "it must not hold its end",
        |data| {
            let with_ends = [b"\r\n", data.as_slice(), b"\r\n--bound"].concat();
            let mut ends = with_ends.windows(9).filter(|window| *window == b"\r\n--bound");
            ends.next().is_some() && ends.next().is_none()
        },
    )
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let name = "[a-z \u{e4};=]{1,8}";
    prop::collection::vec((name, prop::option::of("[a-z .;\u{e4}]{1,8}"), data()), 0..5)
}

/// Bytes that are nearly a form.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "--bound",
        "\r\n",
        "\r\n--bound",
        "--",
        "\r\n\r\n",
        "--bound\r\n",
        "--bound--",
        " ",
        "x",
        "Content-Disposition: form-data; name=\"a\"\r\n\r\n",
        "Content-Disposition: ",
        "form-data; name=a",
        "; filename=\"",
        "\"",
        ":",
        "\r",
        "\n",
        "\u{e4}",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..40, 1..6)
}

proptest! {
    #[test]
    fn what_is_written_reads_back_however_it_is_cut(parts in parts(), sizes in sizes()) {
        let bytes = written(&parts);
        prop_assert_eq!(read(&bytes, &sizes, LIMITS), (parts.clone(), Ok(true)));
        prop_assert_eq!(read(&bytes, &[1], LIMITS), (parts, Ok(true)));
    }

    #[test]
    fn any_bytes_read_the_same_however_they_are_cut(bytes in soup(), sizes in sizes()) {
        let whole = read(&bytes, &[usize::MAX / 2], LIMITS);
        prop_assert_eq!(read(&bytes, &sizes, LIMITS), whole.clone());
        prop_assert_eq!(read(&bytes, &[1], LIMITS), whole);
    }

    #[test]
    fn multer_reads_the_same(parts in parts()) {
        prop_assert_eq!(by_multer(written(&parts)), Ok(parts));
    }
}

/// A form as multer reads it.
fn by_multer(bytes: Vec<u8>) -> Result<Vec<Part>, String> {
    finish(async move {
        let mut form = multer::Multipart::new(Once(Some(bytes.into())), BOUNDARY);
        let mut parts = Vec::new();
        while let Some(field) = form.next_field().await.map_err(|error| error.to_string())? {
            let name = field.name().unwrap_or_default().to_owned();
            let file_name = field.file_name().map(str::to_owned);
            let data = field.bytes().await.map_err(|error| error.to_string())?;
            parts.push((name, file_name, data.to_vec()));
        }
        Ok(parts)
    })
}

struct Once(Option<Bytes>);

impl Stream for Once {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// Runs a future that never waits.
fn finish<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("everything is there"),
    }
}
