//! Decodes one head many times, to be counted by callgrind.
//!
//! `instructions OURS|HTTPARSE PLAIN|BROWSER TIMES`: the difference of two runs, divided by the
//! difference of their TIMES, is the exact cost of one head in instructions.

use std::env;
use std::hint::black_box;

use gustnado_http::head::{Decoded, Head};
use gustnado_http::limits::Limits;

/// 40 bytes.
const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

/// What a browser sends on a click: 12 fields, 560 bytes.
const BROWSER: &[u8] = b"GET /articles/2024/index.html?page=2 HTTP/1.1\r\n\
Host: www.example.com\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
Accept-Language: en-US,en;q=0.5\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Referer: https://www.example.com/articles/\r\n\
Connection: keep-alive\r\n\
Cookie: session=0123456789abcdef; theme=dark\r\n\
Upgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-Site: same-origin\r\n\r\n";

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let [parser, head, times] = words.as_slice() else {
        eprintln!("usage: instructions ours|httparse plain|browser TIMES");
        return;
    };
    let head = if head == "plain" { PLAIN } else { BROWSER };
    let times: u32 = times.parse().unwrap_or(1);
    let decode = if parser == "ours" { ours } else { httparse };
    for _ in 0..times {
        black_box(decode(black_box(head)));
    }
    println!("{parser}: {} bytes, {times} times", head.len());
}

#[inline(never)]
fn ours(bytes: &[u8]) -> usize {
    match Head::decode(bytes, &mut 0, &LIMITS) {
        Ok(Decoded::Done(head)) => black_box(&head).len(),
        _ => 0,
    }
}

const LIMITS: Limits = Limits {
    head_bytes_max: 16_384,
    target_bytes_max: 8_192,
    fields_max: 100,
    body_bytes_max: 1 << 20,
};

/// Syntax alone: neither framing nor the host is checked, and every field must be walked again to
/// be found.
#[inline(never)]
fn httparse(bytes: &[u8]) -> usize {
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; 48];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(len)) => len,
        _ => 0,
    }
}
