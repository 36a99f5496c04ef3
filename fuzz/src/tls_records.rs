//! The own record layer: what is opened is what was sealed, whatever comes behind it.
#![no_main]

use gustnado_tls::fuzzing::records;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    records(bytes, usize::from(*step) + 1);
});
