//! A client's hello: it is refused the same way however it is cut, and the alert is whole.
#![no_main]

use gustnado_tls::fuzzing::hello;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let refused = hello(bytes, bytes.len());
    assert_eq!(hello(bytes, usize::from(*step) + 1), refused);
    assert_eq!(hello(bytes, 1), refused);
    // In a record of its own, so that most inputs get as far as the message.
    if let Ok(len) = u16::try_from(bytes.len()) {
        let [high, low] = len.to_be_bytes();
        hello(&[&[22, 3, 1, high, low], bytes].concat(), usize::from(*step) + 1);
    }
});
