//! The client's side against the server's, without a socket.

use proptest::prelude::*;

use super::super::*;
use super::shown;
use crate::fields::HeaderId;
use crate::h2::{H2Connection, H2Event, H2Limits, H2Scratch, Step};
use crate::limits::Limits;

/// The server's side: responds to each request with the length of its body.
struct Lengths {
    core: H2Connection<usize>,
    scratch: H2Scratch,
    h2: H2Limits,
    limits: Limits,
    out: Vec<u8>,
}

impl Lengths {
    fn new() -> Self {
        let (h2, limits) = (H2Limits::default(), Limits::default());
        let (mut scratch, mut out) = (H2Scratch::default(), Vec::new());
        let mut step =
            Step { scratch: &mut scratch, h2: &h2, limits: &limits, now_ms: 0, out: &mut out };
        let core = H2Connection::new(&mut step);
        Self { core, scratch, h2, limits, out }
    }

    /// Returns how many bytes it has used.
    fn read(&mut self, input: &[u8]) -> usize {
        let Self { core, scratch, h2, limits, out } = self;
        let mut used = 0;
        loop {
            let mut step = Step { scratch, h2, limits, now_ms: 0, out };
            let next = core.next(&input[used..], &mut step).expect("the client keeps the rules");
            used += next.0;
            match next.1 {
                None => return used,
                Some(H2Event::Request { id, head, is_end }) => {
                    let bytes = step.scratch.head_bytes().to_vec();
                    assert_eq!(head.on(&bytes).field("authorization"), Some(&b"secret"[..]));
                    core.open(id, (Some((&head, &bytes)), is_end), 0);
                    core.write_head(id, is_end, out, |encoder, out| {
                        encoder.status(200, out);
                        encoder.field("x-way".into(), b"back", out);
                    });
                    if is_end {
                        core.finish(id, out);
                    }
                }
                Some(H2Event::Data { id, bytes, is_end }) => {
                    core.take(id, bytes.len(), u32::MAX, &mut step);
                    let stream = core.stream(id).expect("it is open");
                    stream.state += bytes.len();
                    if is_end {
                        let line = stream.state.to_string();
                        core.write_data_header(id, line.len(), true, out);
                        out.extend_from_slice(line.as_bytes());
                        core.finish(id, out);
                    }
                }
                Some(H2Event::Window) => {}
                Some(other) => panic!("{other:?}"),
            }
        }
    }
}

/// Sends bodies of these lengths to the server's side, in memory, and returns what comes back.
///
/// - `chunk`: bytes at once, either way.
fn conversation(chunk: usize, bodies: &[usize]) -> Vec<String> {
    let (mut server, mut to_server, mut seen) = (Lengths::new(), Vec::new(), Vec::new());
    let mut client = H2Client::<&'static str>::new(H2ClientLimits::default(), &mut to_server);
    let mut lefts = Vec::new();
    for len in bodies {
        let id = client.open((false, *len == 0), "one", &mut to_server, |encoder, out| {
            encoder.request_line(("POST", false), (b"a", b"/echo"), false, out);
            encoder.field(HeaderId::Authorization.into(), b"secret", out);
        });
        lefts.push((id, *len));
    }
    while client.streams().any(|stream| !stream.is_remote_closed) {
        for (id, left) in &mut lefts {
            let body = vec![b'x'; *left];
            *left -= client.write_data(*id, &body, true, &mut to_server);
        }
        let given = to_server.len().min(chunk);
        let used = server.read(&to_server[..given]);
        to_server.drain(..used);
        let (given, mut used) = (server.out.len().min(chunk), 0);
        loop {
            let next = client.next(&server.out[used..given], 0, &mut to_server);
            let (more, event) = next.expect("the server keeps the rules");
            used += more;
            let Some(event) = event else { break };
            let shown = shown(&event, &client);
            if let H2ClientEvent::Data { bytes, .. } = event {
                seen.push(String::from_utf8_lossy(bytes).into_owned());
            } else if !matches!(event, H2ClientEvent::Window) {
                seen.push(shown);
            }
        }
        server.out.drain(..used);
    }
    seen
}

#[test]
fn it_agrees_with_the_servers_side() {
    let mut seen = conversation(usize::MAX, &[0, 5, 300_000]);
    seen.sort();
    let wanted =
        ["1 200 [x-way=back] end", "3 200 [x-way=back]", "300000", "5", "5 200 [x-way=back]"];
    assert_eq!(seen, wanted);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn however_bytes_are_cut_both_sides_agree(
        // A whole frame of fields has to fit.
        chunk in 64_usize..5_000,
        bodies in prop::collection::vec(0_usize..30_000, 1..5),
    ) {
        let joined = |chunk| {
            let mut seen = conversation(chunk, &bodies);
            seen.sort();
            seen
        };
        let heads = |seen: &[String]| seen.iter().filter(|event| event.contains(" 200 ")).count();
        let digits = |seen: &[String]| {
            let bodies = seen.iter().filter(|event| !event.contains(' '));
            let mut all: Vec<u8> = bodies.flat_map(|body| body.bytes()).collect();
            all.sort_unstable();
            all
        };
        let (cut, whole) = (joined(chunk), joined(usize::MAX));
        prop_assert_eq!(heads(&cut), bodies.len());
        prop_assert_eq!(digits(&cut), digits(&whole));
    }
}
