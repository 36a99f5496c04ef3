//! What is agreed on about compression: permessage-deflate (RFC 7692 §7.1).

use std::fmt;

/// The name of the extension.
const NAME: &[u8] = b"permessage-deflate";

/// The largest window, in bits: 32 KiB.
pub const WINDOW_BITS_MAX: u8 = 15;

/// The smallest window that a compressor is given. RFC 7692 allows 8, with which zlib cannot
/// compress without a header.
pub const WINDOW_BITS_MIN: u8 = 9;

/// What both ends have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflateAgreed {
    /// The server begins each message with an empty window.
    pub server_no_context_takeover: bool,
    /// The client does.
    pub client_no_context_takeover: bool,
    /// Bits of the server's window, 9 to 15.
    pub server_window_bits: u8,
    /// Bits of the client's window, 8 to 15.
    pub client_window_bits: u8,
    /// The client has named its window, so that the answer may.
    names_client_window: bool,
}

/// What a server wants of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeflateOptions {
    /// Both windows live beyond a message where the client allows it: they compress better, and
    /// take memory for as long as the connection is open.
    pub keeps_context: bool,
    /// The largest window of either side, in bits, 9 to 15.
    pub window_bits_max: u8,
}

impl DeflateOptions {
    /// Returns the value of `Sec-WebSocket-Extensions` by which a client offers compression.
    pub fn offer(self) -> String {
        let mut offer = String::from("permessage-deflate; client_max_window_bits");
        let most = self.window_bits_max.clamp(WINDOW_BITS_MIN, WINDOW_BITS_MAX);
        if most < WINDOW_BITS_MAX {
            let most = most.to_string();
            offer += &["=", &most, "; server_max_window_bits=", &most].concat();
        }
        if !self.keeps_context {
            offer += "; server_no_context_takeover; client_no_context_takeover";
        }
        offer
    }
}

/// An offer, as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offer {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_window_bits: Option<u8>,
    /// `Some(None)`: the client takes any window that it is told.
    #[expect(clippy::option_option, reason = "the name may be missing, and so may its value")]
    client_window_bits: Option<Option<u8>>,
}

impl DeflateAgreed {
    /// Chooses the first offer of a client that can be met; `None`: there is none.
    ///
    /// - `fields`: the values of `Sec-WebSocket-Extensions`, in their order.
    pub fn choose<'a>(
        fields: impl IntoIterator<Item = &'a [u8]>,
        wanted: DeflateOptions,
    ) -> Option<Self> {
        let mut offers = fields.into_iter().flat_map(elements);
        offers.find_map(|offer| Self::meet(Offer::read(offer)?, wanted))
    }

    fn meet(offer: Offer, wanted: DeflateOptions) -> Option<Self> {
        let most = wanted.window_bits_max.clamp(WINDOW_BITS_MIN, WINDOW_BITS_MAX);
        let server_window_bits = offer.server_window_bits.unwrap_or(WINDOW_BITS_MAX).min(most);
        if server_window_bits < WINDOW_BITS_MIN {
            return None;
        }
        // A client that does not name its window cannot be told to make it smaller.
        let client_window_bits = match offer.client_window_bits {
            None => WINDOW_BITS_MAX,
            Some(bits) => bits.unwrap_or(WINDOW_BITS_MAX).min(most),
        };
        Some(Self {
            server_no_context_takeover: offer.server_no_context_takeover || !wanted.keeps_context,
            client_no_context_takeover: offer.client_no_context_takeover || !wanted.keeps_context,
            server_window_bits,
            client_window_bits,
            names_client_window: offer.client_window_bits.is_some(),
        })
    }

    /// Reads what a server has answered to an [offer](DeflateOptions::offer). It may have left out
    /// what a client asks of it, which has to inflate in any case.
    ///
    /// # Errors
    /// The answer is no valid one: the connection must fail (RFC 7692 §5.1).
    pub fn of_answer(field: &[u8]) -> Result<Self, InvalidAnswer> {
        let mut answers = elements(field);
        let (Some(answer), None) = (answers.next(), answers.next()) else {
            return Err(InvalidAnswer);
        };
        let offer = Offer::read(answer).ok_or(InvalidAnswer)?;
        let client_window_bits = match offer.client_window_bits {
            Some(None) => return Err(InvalidAnswer),
            Some(Some(bits)) => bits,
            None => WINDOW_BITS_MAX,
        };
        Ok(Self {
            server_no_context_takeover: offer.server_no_context_takeover,
            client_no_context_takeover: offer.client_no_context_takeover,
            server_window_bits: offer.server_window_bits.unwrap_or(WINDOW_BITS_MAX),
            client_window_bits,
            names_client_window: offer.client_window_bits.is_some(),
        })
    }
}

/// An answer about extensions that no offer allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidAnswer;

/// The value of `Sec-WebSocket-Extensions` that answers an offer.
impl fmt::Display for DeflateAgreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("permessage-deflate")?;
        if self.server_no_context_takeover {
            f.write_str("; server_no_context_takeover")?;
        }
        if self.client_no_context_takeover {
            f.write_str("; client_no_context_takeover")?;
        }
        if self.server_window_bits < WINDOW_BITS_MAX {
            write!(f, "; server_max_window_bits={}", self.server_window_bits)?;
        }
        if self.names_client_window && self.client_window_bits < WINDOW_BITS_MAX {
            write!(f, "; client_max_window_bits={}", self.client_window_bits)?;
        }
        Ok(())
    }
}

impl Offer {
    /// Reads an element of the list; `None` if it is another extension, or breaks a rule: then it
    /// is declined (RFC 7692 §7.1).
    fn read(element: &[u8]) -> Option<Self> {
        let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        if parts.next() != Some(NAME) {
            return None;
        }
        let mut offer = Self::default();
        for part in parts {
            let mut words = part.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            let (name, value) = (words.next()?, words.next().map(unquoted));
            let is_new = match (name, value) {
                (b"server_no_context_takeover", None) => set(&mut offer.server_no_context_takeover),
                (b"client_no_context_takeover", None) => set(&mut offer.client_no_context_takeover),
                (b"server_max_window_bits", Some(bits)) => {
                    offer.server_window_bits.replace(window_bits(bits)?).is_none()
                }
                (b"client_max_window_bits", bits) => {
                    let bits = bits.map(window_bits);
                    if bits == Some(None) {
                        return None;
                    }
                    offer.client_window_bits.replace(bits.flatten()).is_none()
                }
                _ => false,
            };
            // Nothing may be said twice, and nothing that is not known.
            if !is_new {
                return None;
            }
        }
        Some(offer)
    }
}

/// Sets a switch. Returns whether it was off.
fn set(switch: &mut bool) -> bool {
    !std::mem::replace(switch, true)
}

/// Returns the elements of a list. (No parameter of the extension may hold a comma.)
fn elements(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    field.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

/// Reads 8 to 15, without zeros in front.
fn window_bits(value: &[u8]) -> Option<u8> {
    match value {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}
