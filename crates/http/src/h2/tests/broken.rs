//! What breaks a rule, or the budget: streams and connections end with the right code.

use super::*;

/// Sends what is wrong.
type Sends = fn(&mut Talk);

const CONNECTION_ERRORS: &[(&str, ErrorCode, Sends)] = &[
    ("a frame too long", ErrorCode::FrameSizeError, |t| {
        _ = t.frame(kind::HEADERS, 0, 1, &[0; 16_385]);
    }),
    ("an even stream", ErrorCode::ProtocolError, |t| _ = t.get(2)),
    ("HEADERS on no stream", ErrorCode::ProtocolError, |t| _ = t.get(0)),
    ("an older stream", ErrorCode::StreamClosed, |t| {
        t.keeps_open = false;
        t.get(3).get(1);
    }),
    ("DATA before HEADERS", ErrorCode::ProtocolError, |t| _ = t.frame(kind::DATA, 0, 1, b"a")),
    ("DATA on no stream", ErrorCode::ProtocolError, |t| _ = t.frame(kind::DATA, 0, 0, b"a")),
    ("padding too long", ErrorCode::ProtocolError, |t| {
        _ = t.post(1).frame(kind::DATA, flag::PADDED, 1, b"\x02a");
    }),
    ("no room for the padding of DATA", ErrorCode::FrameSizeError, |t| {
        _ = t.post(1).frame(kind::DATA, flag::PADDED, 1, b"");
    }),
    ("a window that the settings make overflow", ErrorCode::FlowControlError, |t| {
        t.post(1).frame(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 255, 0, 0]);
        write_settings(&[(setting::INITIAL_WINDOW_SIZE, i32::MAX as u32)], &mut t.input);
    }),
    ("a block interrupted", ErrorCode::ProtocolError, |t| {
        t.frame(kind::HEADERS, 0, 1, b"").frame(kind::PING, 0, 0, &[0; 8]);
    }),
    ("CONTINUATION of nothing", ErrorCode::ProtocolError, |t| {
        _ = t.frame(kind::CONTINUATION, 0, 1, b"");
    }),
    ("PUSH_PROMISE", ErrorCode::ProtocolError, |t| _ = t.frame(kind::PUSH_PROMISE, 4, 1, &[0; 4])),
    ("SETTINGS on a stream", ErrorCode::ProtocolError, |t| _ = t.frame(kind::SETTINGS, 0, 1, b"")),
    ("SETTINGS cut", ErrorCode::FrameSizeError, |t| _ = t.frame(kind::SETTINGS, 0, 0, &[0; 5])),
    ("an acknowledgement with a payload", ErrorCode::FrameSizeError, |t| {
        _ = t.frame(kind::SETTINGS, 1, 0, &[0; 6]);
    }),
    ("push that is neither", ErrorCode::ProtocolError, |t| {
        write_settings(&[(setting::ENABLE_PUSH, 2)], &mut t.input);
    }),
    ("a window too large", ErrorCode::FlowControlError, |t| {
        write_settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)], &mut t.input);
    }),
    ("frames too short", ErrorCode::ProtocolError, |t| {
        write_settings(&[(setting::MAX_FRAME_SIZE, 1)], &mut t.input);
    }),
    ("PING cut", ErrorCode::FrameSizeError, |t| _ = t.frame(kind::PING, 0, 0, &[0; 7])),
    ("PING on a stream", ErrorCode::ProtocolError, |t| _ = t.frame(kind::PING, 0, 1, &[0; 8])),
    ("GOAWAY on a stream", ErrorCode::ProtocolError, |t| _ = t.frame(kind::GOAWAY, 0, 1, &[0; 8])),
    ("WINDOW_UPDATE of nothing", ErrorCode::ProtocolError, |t| {
        _ = t.frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]);
    }),
    ("WINDOW_UPDATE cut", ErrorCode::FrameSizeError, |t| {
        _ = t.frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]);
    }),
    ("WINDOW_UPDATE too early", ErrorCode::ProtocolError, |t| {
        _ = t.frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    }),
    ("the window overflows", ErrorCode::FlowControlError, |t| {
        _ = t.frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]);
    }),
    ("RST_STREAM too early", ErrorCode::ProtocolError, |t| {
        _ = t.frame(kind::RST_STREAM, 0, 1, &[0; 4]);
    }),
    ("RST_STREAM cut", ErrorCode::FrameSizeError, |t| {
        _ = t.get(1).frame(kind::RST_STREAM, 0, 1, &[0; 3]);
    }),
    ("PRIORITY on no stream", ErrorCode::ProtocolError, |t| {
        _ = t.frame(kind::PRIORITY, 0, 0, &[0; 5]);
    }),
    ("a broken block", ErrorCode::CompressionError, |t| _ = t.frame(kind::HEADERS, 5, 1, &[0x80])),
    ("a block in too many frames", ErrorCode::EnhanceYourCalm, |t| {
        t.frame(kind::HEADERS, 0, 1, b"");
        (0..9).for_each(|_| _ = t.frame(kind::CONTINUATION, 0, 1, b""));
    }),
    ("a block too long", ErrorCode::EnhanceYourCalm, |t| {
        t.frame(kind::HEADERS, 0, 1, &[0; 16_000]);
        (0..2).for_each(|_| _ = t.frame(kind::CONTINUATION, 0, 1, &[0; 16_000]));
    }),
    ("settings without end", ErrorCode::EnhanceYourCalm, |t| {
        _ = t.frame(kind::SETTINGS, 0, 0, &[0; 33 * 6]);
    }),
];

#[test]
fn connection_errors_have_their_codes() {
    for (what, code, sends) in CONNECTION_ERRORS {
        let mut talk = Talk::begun();
        sends(&mut talk);
        assert_eq!(talk.run(), Err(*code), "{what}");
    }
    let mut talk = Talk::silent();
    talk.input.extend_from_slice(b"GET / HTTP/1.1\r\n");
    assert_eq!(talk.run(), Err(ErrorCode::ProtocolError));
    let mut talk = Talk::silent();
    talk.input.extend_from_slice(PREFACE);
    talk.frame(kind::PING, 0, 0, &[0; 8]);
    assert_eq!(talk.run(), Err(ErrorCode::ProtocolError), "SETTINGS are the first frame");
}

#[test]
fn stream_errors_end_their_stream_alone() {
    use ErrorCode::*;
    let cases: &[(&str, ErrorCode, Sends)] = &[
        ("DATA behind the end", StreamClosed, |t| _ = t.get(1).frame(kind::DATA, 0, 1, &[0; 20])),
        ("trailers behind the end", StreamClosed, |t| _ = t.get(1).headers(1, 1, &[("a", "b")])),
        ("trailers that end nothing", ProtocolError, |t| {
            _ = t.post(1).headers(1, 0, &[("a", "b")]);
        }),
        ("trailers with a pseudo field", ProtocolError, |t| {
            _ = t.post(1).headers(1, 1, &[(":path", "b")]);
        }),
        ("less than announced", ProtocolError, |t| {
            t.headers(1, 0, &[POST, &[("content-length", "3")]].concat());
            t.frame(kind::DATA, 1, 1, b"ab");
        }),
        ("more than announced", ProtocolError, |t| {
            t.headers(1, 0, &[POST, &[("content-length", "3")]].concat());
            t.frame(kind::DATA, 0, 1, &[0; 20]);
        }),
        ("WINDOW_UPDATE of nothing", ProtocolError, |t| {
            _ = t.get(1).frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]);
        }),
        ("its window overflows", FlowControlError, |t| {
            t.get(1).frame(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 255, 255, 255]);
        }),
        ("more than its window", FlowControlError, |t| {
            t.post(1);
            (0..5).for_each(|_| _ = t.frame(kind::DATA, 0, 1, &[0; 16_384]));
        }),
        ("it depends on itself", ProtocolError, |t| {
            _ = t.get(1).frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 0]);
        }),
        ("PRIORITY cut", FrameSizeError, |t| _ = t.get(1).frame(kind::PRIORITY, 0, 1, &[0; 4])),
    ];
    for (what, code, sends) in cases {
        let mut talk = Talk::begun();
        sends(&mut talk);
        let seen = talk.run().unwrap_or_else(|code| panic!("{what}: {code:?}"));
        assert!(seen.contains(&format!("1 reset {}", code.name())), "{what}: {seen:?}");
        assert_eq!(talk.resets(), [(1, *code)], "{what}");
        assert_eq!(talk.get(5).run().map(|seen| seen.len()), Ok(1), "{what}: the others go on");
    }
}

#[test]
fn what_was_under_way_for_streams_that_were_reset_is_read_over() {
    let mut talk = Talk::begun();
    let ids: Vec<u32> = (1..=41).step_by(2).collect();
    for id in &ids {
        talk.post(*id);
    }
    talk.run().expect("no error");
    let mut out = std::mem::take(&mut talk.out);
    for id in &ids {
        talk.connection.finish(*id, &mut out);
    }
    // The client knows of none of this, and ends its bodies, some with trailers.
    for id in &ids {
        talk.frame(kind::DATA, 0, *id, &[0; 20]).headers(*id, flag::END_STREAM, &[("x-sum", "1")]);
    }
    assert_eq!(talk.run(), Ok(Vec::new()));
    assert_eq!(talk.resets(), [], "each was told once");
    assert_eq!(talk.get(43).run().map(|seen| seen.len()), Ok(1), "the others go on");
}

#[test]
fn what_was_under_way_at_a_goaway_is_read_over() {
    let mut talk = Talk::begun();
    talk.post(1);
    talk.run().expect("no error");
    let mut out = std::mem::take(&mut talk.out);
    talk.connection.go_away(H2Error::new(ErrorCode::NoError, "the end"), &mut out);
    talk.post(3).frame(kind::DATA, 0, 3, &[0; 20]);
    talk.headers(3, flag::END_STREAM, &[("x-sum", "1")]).get(5);
    talk.frame(kind::DATA, flag::END_STREAM, 1, &[0; 20]);
    assert_eq!(talk.run(), Ok(vec!["1 data 20 end".to_owned()]));
    assert_eq!(talk.resets(), []);
}

#[test]
fn a_flood_of_anything_ends_the_connection() {
    type Sends = fn(&mut Talk, u32);
    let floods: &[(&str, Sends)] = &[
        ("rapid reset", |t, at| {
            _ = t.get(2 * at + 1).frame(kind::RST_STREAM, 0, 2 * at + 1, &[0; 4]);
        }),
        ("made you reset", |t, at| {
            _ = t.get(2 * at + 1).frame(kind::WINDOW_UPDATE, 0, 2 * at + 1, &[0; 4]);
        }),
        ("settings", |t, _| _ = t.frame(kind::SETTINGS, 0, 0, b"")),
        ("ping", |t, _| _ = t.frame(kind::PING, 0, 0, &[0; 8])),
        ("priority", |t, _| _ = t.frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 3, 0])),
        ("priority update", |t, _| _ = t.frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1")),
        ("window", |t, _| _ = t.frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("unknown frames", |t, _| _ = t.frame(99, 0, 0, b"")),
        ("malformed requests", |t, at| _ = t.headers(2 * at + 1, 1, &[(":method", "GET")])),
        ("too many streams", |t, at| _ = t.get(2 * at + 1)),
        ("trailers of a stream that was reset", |t, at| {
            if at == 0 {
                t.get(1).frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]);
            }
            t.headers(1, flag::END_STREAM, &[("a", "b")]);
        }),
        ("empty data", |t, at| {
            if at == 0 {
                t.post(1);
            }
            t.frame(kind::DATA, 0, 1, b"");
        }),
    ];
    for (what, sends) in floods {
        let mut talk = Talk::begun();
        let ended = (0..1_200).position(|at| {
            sends(&mut talk, at);
            talk.run() == Err(ErrorCode::EnhanceYourCalm)
        });
        assert!(ended.is_some_and(|at| at >= 999), "{what}: {ended:?}");
        assert!(talk.out.len() < 64 << 10, "{what}: {} bytes of replies", talk.out.len());
    }
}

#[test]
fn a_client_that_measures_the_line_is_no_flood() {
    let mut talk = Talk::begun();
    for at in 0..1_000 {
        talk.keeps_open = false;
        talk.get(2 * at + 1).frame(kind::PING, 0, 0, &[0; 8]).frame(
            kind::WINDOW_UPDATE,
            0,
            0,
            &[0, 0, 0, 9],
        );
        assert!(talk.run().is_ok(), "{at}");
    }
}
