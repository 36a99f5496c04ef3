//! The counters of TLS handshakes: by version, by cipher suite, by group, by reason of failure.

use gustnado_tls::{HandshakeFailure, HandshakeRefusal, TlsInfo, TlsProperty};

use super::table::Cell;

/// Returns the counters of a handshake that succeeded.
pub(super) fn cells_of(tls: &TlsInfo) -> impl Iterator<Item = Cell> {
    let cell = |property, of: fn(&[u8]) -> Cell| tls.property(property).map(of);
    [
        Some(Cell::Handshakes),
        tls.is_resumed().then_some(Cell::HandshakesResumed),
        cell(TlsProperty::Protocol, of_version),
        cell(TlsProperty::Cipher, of_cipher),
        // A resumed session of TLS 1.2 exchanges no keys.
        cell(TlsProperty::Group, of_group),
    ]
    .into_iter()
    .flatten()
}

fn of_version(name: &[u8]) -> Cell {
    match name {
        b"TLSv1.2" => Cell::HandshakesTls12,
        _ => Cell::HandshakesTls13,
    }
}

fn of_cipher(name: &[u8]) -> Cell {
    match name {
        b"TLS_AES_128_GCM_SHA256" => Cell::HandshakesAes128,
        b"TLS_AES_256_GCM_SHA384" => Cell::HandshakesAes256,
        b"TLS_CHACHA20_POLY1305_SHA256" => Cell::HandshakesChacha20,
        b"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" => Cell::HandshakesEcdsaAes128,
        b"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" => Cell::HandshakesEcdsaAes256,
        b"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256" => Cell::HandshakesEcdsaChacha20,
        b"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" => Cell::HandshakesRsaAes128,
        b"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" => Cell::HandshakesRsaAes256,
        b"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" => Cell::HandshakesRsaChacha20,
        _ => Cell::HandshakesOtherCipher,
    }
}

fn of_group(name: &[u8]) -> Cell {
    match name {
        b"X25519MLKEM768" => Cell::HandshakesX25519Mlkem768,
        b"X25519" => Cell::HandshakesX25519,
        b"secp256r1" => Cell::HandshakesSecp256r1,
        b"secp384r1" => Cell::HandshakesSecp384r1,
        _ => Cell::HandshakesOtherGroup,
    }
}

/// Returns the counters of one that failed.
pub(super) fn cells_of_failure(failure: HandshakeFailure) -> &'static [Cell] {
    match failure {
        HandshakeFailure::Plain => &[Cell::HandshakesFailed, Cell::HandshakesPlain],
        HandshakeFailure::Slow => &[Cell::HandshakesFailed, Cell::HandshakesSlow],
        HandshakeFailure::Evicted => &[Cell::HandshakesFailed, Cell::HandshakesEvicted],
        HandshakeFailure::Lost => &[Cell::HandshakesFailed, Cell::HandshakesLost],
        HandshakeFailure::Refused(refusal) => match refusal {
            HandshakeRefusal::NotTls => {
                &[Cell::HandshakesFailed, Cell::HandshakesRefused, Cell::HandshakesNotTls]
            }
            HandshakeRefusal::UnknownName => {
                &[Cell::HandshakesFailed, Cell::HandshakesRefused, Cell::HandshakesUnknownName]
            }
            HandshakeRefusal::Incompatible => {
                &[Cell::HandshakesFailed, Cell::HandshakesRefused, Cell::HandshakesIncompatible]
            }
            HandshakeRefusal::ClientCertificate => &[
                Cell::HandshakesFailed,
                Cell::HandshakesRefused,
                Cell::HandshakesClientCertificate,
            ],
            HandshakeRefusal::Alert => {
                &[Cell::HandshakesFailed, Cell::HandshakesRefused, Cell::HandshakesAlert]
            }
            HandshakeRefusal::Malformed => {
                &[Cell::HandshakesFailed, Cell::HandshakesRefused, Cell::HandshakesMalformed]
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::COUNTERS;
    use super::*;
    use crate::stats::{Added, Fault, Stats, Tally};

    /// The value of every row of a family but `other`, and the cell that it has.
    fn assert_known(family: &str, of: fn(&[u8]) -> Cell, other: Cell) {
        let labels = COUNTERS.iter().filter_map(|counter| counter.label);
        let values: Vec<_> =
            labels.filter(|(name, ..)| *name == family).map(|(.., value)| value).collect();
        assert!(values.len() > 2, "{family}");
        let mut cells: Vec<_> = values.iter().map(|value| of(value.as_bytes()) as usize).collect();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), values.len(), "each row has a cell of its own: {family}");
        assert_eq!(of(b"one of tomorrow"), other);
    }

    #[test]
    fn every_known_name_has_a_counter_and_others_share_one() {
        assert_known("handshakes_by_cipher", of_cipher, Cell::HandshakesOtherCipher);
        assert_known("handshakes_by_group", of_group, Cell::HandshakesOtherGroup);
        assert_eq!(of_version(b"TLSv1.2"), Cell::HandshakesTls12);
        assert_eq!(of_version(b"TLSv1.3"), Cell::HandshakesTls13);
    }

    #[test]
    fn failures_add_up_by_reason() {
        let tally = Tally::default();
        let mut reasons = vec![
            HandshakeFailure::Plain,
            HandshakeFailure::Slow,
            HandshakeFailure::Evicted,
            HandshakeFailure::Lost,
        ];
        let refusals = [
            HandshakeRefusal::NotTls,
            HandshakeRefusal::UnknownName,
            HandshakeRefusal::Incompatible,
            HandshakeRefusal::ClientCertificate,
            HandshakeRefusal::Alert,
            HandshakeRefusal::Malformed,
        ];
        reasons.extend(refusals.map(HandshakeFailure::Refused));
        for failure in reasons {
            tally.add(&Added { fault: Some(Fault::Handshake(failure)), ..Added::default() });
        }
        let mut stats = Stats::default();
        stats.include(&tally);
        assert_eq!((stats.handshakes_failed, stats.handshakes_refused), (10, 6));
        let is_reason = |name: &str| {
            let row = COUNTERS.iter().find(|counter| counter.name == name);
            let label = row.and_then(|counter| counter.label);
            label.is_some_and(|(family, ..)| family == "handshakes_failed_by_reason")
        };
        let by_reason = stats.named().filter(|(name, _)| is_reason(name));
        assert_eq!(by_reason.map(|(_, count)| count).collect::<Vec<_>>(), [1; 10]);
    }
}
