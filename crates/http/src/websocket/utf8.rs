//! UTF-8 of texts that come in pieces, which may be cut within a character.

use super::close::Violation;

const INVALID: Violation = Violation::utf8("a text is not UTF-8");

/// How far a text is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utf8Check {
    /// The bytes of a character that is not whole.
    begun: [u8; 4],
    begun_len: u8,
}

impl Utf8Check {
    /// Checks the next piece of a text.
    ///
    /// # Errors
    /// No text can begin so. This is known with the first byte that is wrong.
    pub fn check(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        while self.begun_len > 0 {
            let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
            bytes = rest;
            self.begin(&[*first]);
            let begun = &self.begun[..usize::from(self.begun_len)];
            match str::from_utf8(begun) {
                Ok(_) => self.begun_len = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(INVALID),
            }
        }
        match str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                self.begin(&bytes[error.valid_up_to()..]);
                Ok(())
            }
            Err(_) => Err(INVALID),
        }
    }

    /// Checks that the text may end here, and begins anew.
    ///
    /// # Errors
    /// Its last character is not whole.
    pub fn end(&mut self) -> Result<(), Violation> {
        if std::mem::take(&mut self.begun_len) == 0 { Ok(()) } else { Err(INVALID) }
    }

    /// Keeps bytes of a character, of which there are three at most that are not whole.
    fn begin(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.begun[usize::from(self.begun_len)] = *byte;
            self.begun_len += 1;
        }
    }
}
