//! The own layer against the library's, over any records: what one seals the other opens to the
//! same, in both directions, under every cipher, through key updates, cut anywhere.
//!
//! `make tls-records` runs it over 10^8 records.

use std::io::Write;

use rustls::{CipherSuite, SupportedProtocolVersion};

use super::tests::{client, configs, content, every_kind, give, shaken, written};
use super::*;
use crate::session::Session;

/// How many records a run has, unless the environment says otherwise.
const RECORDS: u64 = 30_000;
/// A connection ends at so many: a key of TLS 1.2 lasts for 2^24.
const RECORDS_OF_CONNECTION: u64 = 2_000_000;
/// The peer may replace its key so often.
const UPDATE_EVERY_MS: u64 = 1_000;

/// Numbers by `SplitMix64`: the same records for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is below a length")
    }

    /// Content of a record: mostly short, sometimes as long as any may be.
    fn content(&mut self) -> Vec<u8> {
        let len = match self.below(200) {
            0 => 1 + self.below(1 << 14),
            1..10 => 1 + self.below(2_000),
            _ => 1 + self.below(64),
        };
        self.next().to_le_bytes().into_iter().cycle().take(len).collect()
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn both_layers_agree_on_any_records() {
    let records = from_environment("GUSTNADO_TLS_RECORDS").unwrap_or(RECORDS);
    let seed = from_environment("GUSTNADO_TLS_SEED").unwrap_or(1);
    let kinds: Vec<_> = every_kind().filter(|(_, _, own)| *own).collect();
    for (version, suite, _) in &kinds {
        let agreed = agree(version, *suite, records / kinds.len() as u64, seed);
        println!("{suite:?}: {agreed} records");
    }
}

fn agree(
    version: &'static SupportedProtocolVersion,
    cipher: CipherSuite,
    wanted: u64,
    seed: u64,
) -> u64 {
    let (site, trusting) = configs(&[version], Some(cipher));
    let has_updates = version.version == rustls::ProtocolVersion::TLSv1_3;
    let mut random = Random(seed);
    let (mut all, mut now_ms) = (0, 0);
    while all < wanted {
        let mut client = client(&trusting, "example.org");
        let Established { mut session, rest, .. } = *shaken(&site, &mut client, true);
        assert!(matches!(session, Session::Own(_)), "the own layer is what is compared");
        let (mut partial, mut here) = (rest, 0);
        while here < RECORDS_OF_CONNECTION && all + here < wanted {
            let batch = 1 + random.below(40);
            let (mut sealed, mut sent) = (Vec::new(), Vec::new());
            if has_updates && random.below(300) == 0 {
                now_ms += UPDATE_EVERY_MS;
                client.refresh_traffic_keys().expect("the handshake is over");
            }
            for _ in 0..batch {
                let bytes = random.content();
                client.writer().write_all(&bytes).expect("memory does not fail");
                sealed.append(&mut written(&mut client));
                sent.extend_from_slice(&bytes);
            }
            let opened = open_cut(&mut session, &mut partial, &sealed, &mut random, now_ms);
            assert!(opened == sent, "{cipher:?}, seed {seed}, behind {} records", all + here);
            here += batch as u64;

            for _ in 0..batch {
                let bytes = random.content();
                let most = if random.below(4) == 0 { 1 + random.below(3_000) } else { 1 << 14 };
                let mut out = Vec::new();
                session.seal(&bytes, most, &mut out).expect("the key is fresh");
                give(&mut client, &out);
                assert!(content(&mut client) == bytes, "{cipher:?}, seed {seed}, to the client");
                here += bytes.len().div_ceil(most) as u64;
            }
        }
        all += here;
    }
    all
}

/// Opens a stream that comes in pieces of any length.
fn open_cut(
    session: &mut Session,
    partial: &mut Vec<u8>,
    mut stream: &[u8],
    random: &mut Random,
    now_ms: u64,
) -> Vec<u8> {
    let mut content = Vec::new();
    let mut room = vec![0; stream.len() + partial.len()];
    while !stream.is_empty() {
        let (piece, rest) = stream.split_at(1 + random.below(stream.len()));
        stream = rest;
        partial.extend_from_slice(piece);
        let opened = session.open(partial, &mut room, now_ms).expect("the client is right");
        content.extend_from_slice(&room[..opened.content]);
        partial.drain(..opened.taken);
    }
    content
}
