//! Writes Parquet by hand: one row group, one page for each column, nothing compressed. Texts are dictionary indices in
//! runs; tables of few names need no other compression.
//!
//! The format is <https://github.com/apache/parquet-format>: `parquet.thrift` for the headers and the footer, which use
//! Thrift's compact protocol, and `Encodings.md` for pages. Building the usual library would take longer than building
//! all the rest of the command, and only for this one shape of file.

use std::collections::BTreeMap;

const MAGIC: &[u8] = b"PAR1";
/// The program's name in the file.
const CREATED_BY: &str = "fairground";

/// Texts with many repetitions.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Each text once, in the order of its first occurrence.
    dictionary: Vec<String>,
    places: BTreeMap<String, u32>,
    indices: Vec<u32>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        let next = self.dictionary.len() as u32;
        let index = match self.places.get(text) {
            Some(&index) => index,
            None => {
                self.dictionary.push(text.to_string());
                self.places.insert(text.to_string(), next);
                next
            }
        };
        self.indices.push(index);
    }

    /// Panics if there are fewer.
    pub fn get(&self, at: usize) -> &str {
        &self.dictionary[self.indices[at] as usize]
    }
}

/// The values of one column; none is missing.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    Texts(&'a Texts),
    Integers(&'a [i64]),
    /// 64 bits, unsigned.
    Naturals(&'a [u64]),
    Numbers(&'a [f64]),
}

/// `Type` of parquet.thrift.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
/// `Encoding`.
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
/// `PageType`.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
/// `FieldRepetitionType`, `CompressionCodec`, `ConvertedType`.
const REQUIRED: i64 = 0;
const UNCOMPRESSED: i64 = 0;
const UTF8: i64 = 0;
const UINT_64: i64 = 14;

/// Where a column's pages lie.
struct Chunk {
    dictionary_at: Option<usize>,
    data_at: usize,
    size: usize,
}

/// A file of `rows` rows. Every column has that many values.
pub fn file(rows: usize, columns: &[(&str, Column)]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let chunks: Vec<Chunk> = columns.iter().map(|(_, column)| add_column(&mut file, rows, column)).collect();
    let footer = footer(rows, columns, &chunks);
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

fn add_column(file: &mut Vec<u8>, rows: usize, column: &Column) -> Chunk {
    let start = file.len();
    let mut dictionary_at = None;
    let (encoding, data) = match column {
        Column::Texts(texts) => {
            assert_eq!(texts.indices.len(), rows, "every column has a value for every row");
            dictionary_at = Some(start);
            let plain: Vec<u8> = texts.dictionary.iter().flat_map(|text| plain_text(text)).collect();
            add_page(file, DICTIONARY_PAGE, texts.dictionary.len(), PLAIN, &plain);
            (RLE_DICTIONARY, runs(texts))
        }
        Column::Integers(values) => (PLAIN, plain(rows, values, |value| value.to_le_bytes())),
        Column::Naturals(values) => (PLAIN, plain(rows, values, |value| value.to_le_bytes())),
        Column::Numbers(values) => (PLAIN, plain(rows, values, |value| value.to_le_bytes())),
    };
    let data_at = file.len();
    add_page(file, DATA_PAGE, rows, encoding, &data);
    Chunk { dictionary_at, data_at, size: file.len() - start }
}

fn plain<T>(rows: usize, values: &[T], bytes: impl Fn(&T) -> [u8; 8]) -> Vec<u8> {
    assert_eq!(values.len(), rows, "every column has a value for every row");
    values.iter().flat_map(bytes).collect()
}

/// The text's length in four bytes, then the text.
fn plain_text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// The width of an index in bits, then each run of equal indices: its length, shifted, and the index in whole bytes.
fn runs(texts: &Texts) -> Vec<u8> {
    let largest = texts.dictionary.len().saturating_sub(1) as u32;
    let bits = (u32::BITS - largest.leading_zeros()).max(1);
    let mut bytes = vec![bits as u8];
    let mut rest = texts.indices.as_slice();
    while let Some(&index) = rest.first() {
        let length = rest.iter().take_while(|other| **other == index).count();
        bytes.extend(variable((length as u64) << 1));
        bytes.extend(&index.to_le_bytes()[..bits.div_ceil(8) as usize]);
        rest = &rest[length..];
    }
    bytes
}

fn add_page(file: &mut Vec<u8>, kind: i64, values: usize, encoding: i64, data: &[u8]) {
    let mut header = Thrift::default();
    header.integer(1, kind);
    header.integer(2, data.len() as i64);
    header.integer(3, data.len() as i64);
    if kind == DATA_PAGE {
        header.structure(5, |page| {
            page.integer(1, values as i64);
            page.integer(2, encoding);
            // Nothing is missing and nothing repeats, so there are no levels. Their encoding must be named all the
            // same.
            page.integer(3, RLE);
            page.integer(4, RLE);
        });
    } else {
        header.structure(7, |page| {
            page.integer(1, values as i64);
            page.integer(2, encoding);
        });
    }
    file.extend(header.ended());
    file.extend(data);
}

/// `FileMetaData`.
fn footer(rows: usize, columns: &[(&str, Column)], chunks: &[Chunk]) -> Vec<u8> {
    let mut meta = Thrift::default();
    meta.integer(1, 1);
    meta.structures(2, columns.len() + 1, |place, element| match place.checked_sub(1) {
        None => {
            element.text(4, "samples");
            element.integer(5, columns.len() as i64);
        }
        Some(column) => add_schema(element, &columns[column]),
    });
    meta.long(3, rows as i64);
    meta.structures(4, 1, |_, group| {
        group.structures(1, columns.len(), |column, chunk| {
            add_chunk(chunk, rows, &columns[column], &chunks[column]);
        });
        group.long(2, chunks.iter().map(|chunk| chunk.size as i64).sum());
        group.long(3, rows as i64);
    });
    meta.text(6, CREATED_BY);
    meta.ended()
}

/// `SchemaElement`.
fn add_schema(element: &mut Thrift, (name, column): &(&str, Column)) {
    element.integer(1, physical(column));
    element.integer(3, REQUIRED);
    element.text(4, name);
    match column {
        Column::Texts(_) => {
            element.integer(6, UTF8);
            // LogicalType: STRING.
            element.structure(10, |logical| logical.structure(1, |_| ()));
        }
        Column::Naturals(_) => {
            element.integer(6, UINT_64);
            // LogicalType: INTEGER of 64 bits, not signed.
            element.structure(10, |logical| {
                logical.structure(10, |integer| {
                    integer.byte(1, 64);
                    integer.boolean(2, false);
                });
            });
        }
        Column::Integers(_) | Column::Numbers(_) => {}
    }
}

fn physical(column: &Column) -> i64 {
    match column {
        Column::Texts(_) => BYTE_ARRAY,
        Column::Integers(_) | Column::Naturals(_) => INT64,
        Column::Numbers(_) => DOUBLE,
    }
}

/// `ColumnChunk`, with its `ColumnMetaData`.
fn add_chunk(chunk: &mut Thrift, rows: usize, (name, column): &(&str, Column), of: &Chunk) {
    chunk.long(2, of.dictionary_at.unwrap_or(of.data_at) as i64);
    chunk.structure(3, |meta| {
        meta.integer(1, physical(column));
        let encodings: &[i64] = if of.dictionary_at.is_some() { &[PLAIN, RLE, RLE_DICTIONARY] } else { &[PLAIN, RLE] };
        meta.integers(2, encodings);
        meta.texts(3, &[name]);
        meta.integer(4, UNCOMPRESSED);
        meta.long(5, rows as i64);
        meta.long(6, of.size as i64);
        meta.long(7, of.size as i64);
        meta.long(9, of.data_at as i64);
        if let Some(at) = of.dictionary_at {
            meta.long(11, at as i64);
        }
    });
}

/// A structure in Thrift's compact protocol.
#[derive(Clone, Debug, Default)]
struct Thrift {
    bytes: Vec<u8>,
    /// The number of the last field: the next one is written as the difference.
    last: i16,
}

/// Types of the protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Thrift {
    fn field(&mut self, number: i16, kind: u8) {
        let step = number - self.last;
        assert!((1..=15).contains(&step), "fields stand in order, and near each other");
        self.bytes.push((step as u8) << 4 | kind);
        self.last = number;
    }

    fn integer(&mut self, number: i16, value: i64) {
        self.field(number, I32);
        self.bytes.extend(variable(zigzag(value)));
    }

    fn long(&mut self, number: i16, value: i64) {
        self.field(number, I64);
        self.bytes.extend(variable(zigzag(value)));
    }

    fn byte(&mut self, number: i16, value: u8) {
        self.field(number, BYTE);
        self.bytes.push(value);
    }

    /// The type of a boolean field is its value.
    fn boolean(&mut self, number: i16, value: bool) {
        self.field(number, if value { TRUE } else { FALSE });
    }

    fn text(&mut self, number: i16, text: &str) {
        self.field(number, BINARY);
        self.add_text(text);
    }

    fn add_text(&mut self, text: &str) {
        self.bytes.extend(variable(text.len() as u64));
        self.bytes.extend(text.as_bytes());
    }

    fn structure(&mut self, number: i16, fill: impl FnOnce(&mut Thrift)) {
        self.field(number, STRUCT);
        let mut inner = Thrift::default();
        fill(&mut inner);
        self.bytes.extend(inner.ended());
    }

    fn list(&mut self, number: i16, length: usize, kind: u8) {
        self.field(number, LIST);
        match length {
            0..=14 => self.bytes.push((length as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                self.bytes.extend(variable(length as u64));
            }
        }
    }

    fn integers(&mut self, number: i16, values: &[i64]) {
        self.list(number, values.len(), I32);
        values.iter().for_each(|value| self.bytes.extend(variable(zigzag(*value))));
    }

    fn texts(&mut self, number: i16, texts: &[&str]) {
        self.list(number, texts.len(), BINARY);
        texts.iter().for_each(|text| self.add_text(text));
    }

    fn structures(&mut self, number: i16, length: usize, mut fill: impl FnMut(usize, &mut Thrift)) {
        self.list(number, length, STRUCT);
        for place in 0..length {
            let mut inner = Thrift::default();
            fill(place, &mut inner);
            self.bytes.extend(inner.ended());
        }
    }

    fn ended(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Seven bits to a byte, the lowest first.
fn variable(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Moves the sign to the lowest bit.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_protocol_are_the_specifications() {
        assert_eq!(variable(300), [0xac, 0x02]);
        assert_eq!([0, -1, 1, -2, 2_147_483_647].map(zigzag), [0, 1, 2, 3, 4_294_967_294]);
        let mut thrift = Thrift::default();
        thrift.integer(1, 5);
        thrift.structure(5, |inner| inner.boolean(2, false));
        thrift.text(6, "ab");
        // Field 1 is an i32 of zigzag 10; field 5 a structure with field 2, false; field 6 two bytes.
        assert_eq!(thrift.ended(), [0x15, 10, 0x4c, 0x22, 0, 0x18, 2, b'a', b'b', 0]);
    }

    #[test]
    fn texts_stand_in_the_dictionary_once_and_in_runs() {
        let mut texts = Texts::default();
        ["b", "b", "a", "b"].iter().for_each(|text| texts.push(text));
        assert_eq!((texts.get(1), texts.get(2)), ("b", "a"));
        assert_eq!(texts.dictionary, ["b", "a"]);
        assert_eq!(runs(&texts), [1, 4, 0, 2, 1, 2, 0]);
    }

    #[test]
    fn a_file_ends_with_its_footer() {
        let mut texts = Texts::default();
        (0..300).for_each(|row| texts.push(&format!("t{row}")));
        let numbers: Vec<f64> = (0..300).map(f64::from).collect();
        let columns = [("t", Column::Texts(&texts)), ("v", Column::Numbers(&numbers))];
        let file = file(300, &columns);
        assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
        let at = file.len() - 8;
        let length = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let footer = &file[at - length..at];
        // The version, 1, comes first; the program's name comes last.
        assert_eq!(footer[..2], [0x15, 2]);
        assert!(footer.ends_with(b"\x0afairground\0"));
        // 300 texts need nine bits, in two bytes each; plain numbers are stored as they are.
        assert_eq!(runs(&texts).len(), 1 + 300 * 3);
        let plain: Vec<u8> = numbers.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(file.windows(plain.len()).any(|bytes| bytes == plain));
        assert_eq!(file, self::file(300, &columns));
    }
}
