//! From a block of fields to its fields (RFC 7541 §3, §6).

use super::table::HpackTable;
use super::{HpackError, huffman, integer, static_table};

/// The state of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    /// Its limit is how large the peer may make it: what it was told by a setting.
    table: HpackTable,
}

/// Memory for the strings of a field, to be reused.
#[derive(Debug, Default)]
pub struct Strings {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// - `max_bytes`: how large the table may become, up to 65,535.
    pub fn new(max_bytes: usize) -> Self {
        Self { table: HpackTable::new(max_bytes) }
    }

    /// Changes how large the table may become, once the peer has acknowledged the setting.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.table.set_limit(max_bytes);
    }

    /// Returns whether the setting has become smaller than the table, so that the peer has to say
    /// so first (RFC 7541 §4.2).
    #[inline]
    fn is_due(&self) -> bool {
        self.table.limit() < self.table.max()
    }

    /// Returns a number that changes with the table: a block that was read without a change of it
    /// means the same for as long as it stays.
    #[inline]
    pub fn table_number(&self) -> u32 {
        self.table.added()
    }

    /// Returns how much memory its table takes.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Decodes a whole block, and hands each field on in order: name and value.
    ///
    /// # Errors
    /// [`HpackError`]: the connection cannot go on.
    #[inline]
    pub fn decode(
        &mut self,
        block: &[u8],
        strings: &mut Strings,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackError> {
        let mut rest = block;
        if matches!(rest.first(), Some(byte) if byte >> 5 == 1) || self.is_due() {
            rest = self.resize(rest)?;
        }
        while let Some(first) = rest.first() {
            if first & 0x80 != 0 {
                let (index, behind) = integer::read(rest, 7)?;
                rest = behind;
                let (name, value) = self.get(index)?;
                field(name, value);
                continue;
            }
            let is_kept = first & 0x40 != 0;
            if !is_kept && first & 0x20 != 0 {
                return Err(HpackError::TableSize);
            }
            let (index, behind) = integer::read(rest, if is_kept { 6 } else { 4 })?;
            rest = if index == 0 {
                let (name, behind) = string(behind, &mut strings.name)?;
                let (value, behind) = string(behind, &mut strings.value)?;
                field(name, value);
                if is_kept {
                    self.table.add(name, value);
                }
                behind
            } else {
                let (name, _) = self.get(index)?;
                let (value, behind) = string(behind, &mut strings.value)?;
                field(name, value);
                if is_kept {
                    // The memory of the table, where the name may be, is about to move.
                    strings.name.clear();
                    strings.name.extend_from_slice(name);
                    self.table.add(&strings.name, value);
                }
                behind
            };
        }
        Ok(())
    }

    #[inline]
    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        match static_table::get(index) {
            Some(field) => Ok(field),
            None if index == 0 => Err(HpackError::Index),
            None => self.table.get(index - static_table::COUNT - 1).ok_or(HpackError::Index),
        }
    }

    /// Reads the changes of the table's size, which stand before the first field.
    #[cold]
    fn resize<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], HpackError> {
        let mut rest = block;
        let mut changes = 0;
        while let Some(byte) = rest.first()
            && byte >> 5 == 1
        {
            let (bytes, behind) = integer::read(rest, 5)?;
            // The smallest one since the last block, and the last one: more have no meaning.
            changes += 1;
            if bytes > self.table.limit() || changes > 2 {
                return Err(HpackError::TableSize);
            }
            self.table.set_max(bytes);
            rest = behind;
        }
        if self.is_due() { Err(HpackError::TableSize) } else { Ok(rest) }
    }
}

/// Reads a string. One that is not coded stays where it is.
#[inline]
fn string<'m, 'i: 'm>(
    input: &'i [u8],
    memory: &'m mut Vec<u8>,
) -> Result<(&'m [u8], &'i [u8]), HpackError> {
    let is_coded = input.first().is_some_and(|byte| byte & 0x80 != 0);
    let (len, rest) = integer::read(input, 7)?;
    let (text, rest) = rest.split_at_checked(len).ok_or(HpackError::Truncated)?;
    if !is_coded {
        return Ok((text, rest));
    }
    memory.clear();
    huffman::decode(text, memory)?;
    Ok((memory, rest))
}
