//! Files of certificates, keys, authorities and tickets: an error in words, or what they hold.
#![no_main]

use std::fs;

use gustnado_tls::fuzzing::files;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let path = std::env::temp_dir().join(format!("gustnado-fuzz-{}.pem", std::process::id()));
    fs::write(&path, input).expect("a temporary file");
    files(&path, 1_800_000_000);
    // As DER in PEM, so that more inputs get as far as the parser.
    let der: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    let pem = |label: &str, body: &str| {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    };
    let body = base64(input);
    fs::write(&path, pem("CERTIFICATE", &body) + &pem("PRIVATE KEY", &body) + &der)
        .expect("a temporary file");
    files(&path, 1_800_000_000);
});

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let number = part.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        let number = number << (8 * (3 - part.len()));
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= part.len() { char::from(letter) } else { '=' });
        }
    }
    let lines: Vec<&str> =
        (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    lines.join("\n")
}
