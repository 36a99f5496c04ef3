//! `Accept-Encoding`: what is chosen exists, is acceptable, and is what another split of the same
//! lines chooses.
#![no_main]

use gustnado_http::content_coding::{AcceptedCodings, CodingSet, ContentCoding};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [bits, value @ ..] = input else { return };
    let exists = |coding: &ContentCoding| bits & 1 << *coding as u8 != 0;
    let available: CodingSet = ContentCoding::ALL.into_iter().filter(exists).collect();
    let accepted = AcceptedCodings::of([value]);
    let best = available_weights(&accepted, available).max();
    match accepted.choose(available) {
        Some(coding) => assert_eq!(best, Some((accepted.weight(coding).expect("wanted"), coding))),
        None => assert_eq!(best, None),
    }
    // Several lines are one list (RFC 9110 §5.3).
    let lines = value.split(|byte| *byte == b',');
    assert_eq!(AcceptedCodings::of(lines), accepted);
});

fn available_weights(
    accepted: &AcceptedCodings,
    available: CodingSet,
) -> impl Iterator<Item = (u16, ContentCoding)> {
    let all = ContentCoding::ALL.into_iter().filter(move |coding| available.has(*coding));
    all.filter_map(|coding| Some((accepted.weight(coding)?, coding)))
}
