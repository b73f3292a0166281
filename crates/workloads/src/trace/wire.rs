//! Protocol buffers on the wire: the fields of a message, one after the other. Unknown fields are skipped.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Fixed32 and fixed64, which no message here uses.
    Fixed,
}

impl<'a> Value<'a> {
    pub fn number(self) -> u64 {
        match self {
            Value::Varint(number) => number,
            Value::Bytes(_) | Value::Fixed => 0,
        }
    }

    pub fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Varint(_) | Value::Fixed => &[],
        }
    }

    pub fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

/// The rest of a message, from some place on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// A message that ends within a field, or bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The number of bytes still to be read.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next field's number and value.
    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(usize::try_from(length).map_err(|_| Broken)?)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Broken),
        };
        if key >> 3 == 0 { Err(Broken) } else { Ok(Some((key >> 3, value))) }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Broken)?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn varint(&mut self) -> Result<u64, Broken> {
        let mut value = 0_u64;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Broken)
    }
}

/// The numbers of a packed field.
pub(super) fn packed(bytes: &[u8]) -> Result<Vec<u64>, Broken> {
    let mut fields = Fields::of(bytes);
    let mut numbers = Vec::new();
    while fields.left() > 0 {
        numbers.push(fields.varint()?);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_unknown_ones_passed() {
        // 1: 300; 2: "ab"; 3: fixed32; 4: fixed64.
        let bytes = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut fields = Fields::of(&bytes);
        assert_eq!(fields.next(), Ok(Some((1, Value::Varint(300)))));
        assert_eq!(fields.next(), Ok(Some((2, Value::Bytes(b"ab")))));
        assert_eq!(fields.next(), Ok(Some((3, Value::Fixed))));
        assert_eq!(fields.next(), Ok(Some((4, Value::Fixed))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn what_ends_early_or_is_no_message_is_broken() {
        for bytes in [&[0x08][..], &[0x08, 0x80], &[0x12, 5, b'a'], &[0x0b], &[0x00, 0x00], &[0xff; 12]] {
            assert_eq!(Fields::of(bytes).next(), Err(Broken), "{bytes:?}");
        }
        assert_eq!(packed(&[1, 0xac, 0x02]), Ok(vec![1, 300]));
        assert_eq!(packed(&[0x80]), Err(Broken));
    }
}
