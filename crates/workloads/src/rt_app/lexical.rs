//! From what json-c reads (rt-app's reader) to what jsonc-parser reads, without losing a position.
//!
//! json-c is wider than JSON: comments, trailing commas, single quotes, keywords in any case, `01`, anything after the
//! first value. Where the two readers differ, the text is rewritten in place, byte for byte, before it is parsed: only
//! the value of a bare `"suspend",` is inserted, and remembered.

use super::fault::{Fault, Position, quoted};
use jsonc_parser::ast::Value;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

/// json-c's own limit (JSON_TOKENER_DEFAULT_DEPTH).
const DEEPEST_NESTING: usize = 32;

/// What stands in for the missing value of a bare `"suspend"`.
const EMPTY_VALUE: &[u8] = b":\"\"";

/// Line starts and multi-byte characters, so that a byte offset becomes a position in logarithmic time.
pub(super) struct Lines {
    starts: Vec<usize>,
    continuation_bytes: Vec<usize>,
}

impl Lines {
    pub fn of(text: &[u8]) -> Lines {
        let mut lines = Lines { starts: vec![0], continuation_bytes: Vec::new() };
        for (at, &byte) in text.iter().enumerate() {
            match byte {
                b'\n' => lines.starts.push(at + 1),
                0x80..=0xbf => lines.continuation_bytes.push(at),
                _ => {}
            }
        }
        lines
    }

    /// Position of the character that begins at `offset`.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let before = |end: usize| self.continuation_bytes.partition_point(|&at| at < end);
        let column = offset - start - (before(offset) - before(start)) + 1;
        Position { line: line as u32, column: column as u32 }
    }
}

/// The text for jsonc-parser, and the way back to the user's.
pub(super) struct Source {
    text: String,
    /// The offsets in `text` at which [`EMPTY_VALUE`] was inserted, ascending.
    inserted: Vec<usize>,
    lines: Lines,
    /// Why the text ends too early, if it does.
    cut: Option<Fault>,
    /// The names without a value, which were given an empty one.
    pub bare_names: Vec<Position>,
    /// Where trailing text begins, which follows the description and is not read.
    pub trailing: Option<Position>,
}

impl Source {
    pub fn new(text: &str) -> Result<Source, Fault> {
        let mut rewrite = Rewrite::new(text);
        let end = rewrite.run()?;
        let trailing = rewrite.significant(end).map(|at| rewrite.lines.position(at));
        let Rewrite { out, inserted, lines, cut, bare_names, .. } = rewrite;
        let text = String::from_utf8(out).expect("only ASCII bytes are rewritten, dropped or inserted");
        Ok(Source { text, inserted, lines, cut, bare_names, trailing })
    }

    /// Position in the user's text of an offset in the rewritten text.
    pub fn position(&self, offset: usize) -> Position {
        let before = self.inserted.partition_point(|&at| at < offset);
        let shift = before * EMPTY_VALUE.len();
        // An offset inside an insertion belongs to the name it follows.
        let user = match before.checked_sub(1).map(|last| self.inserted[last]) {
            Some(at) if offset < at + EMPTY_VALUE.len() => at - (before - 1) * EMPTY_VALUE.len(),
            _ => offset - shift,
        };
        self.lines.position(user)
    }

    pub fn parse(&self) -> Result<Value<'_>, Fault> {
        let options = ParseOptions {
            allow_comments: false,
            allow_loose_object_property_names: false,
            allow_trailing_commas: true,
            allow_missing_commas: false,
            allow_single_quoted_strings: true,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: true,
            allow_extended_string_escapes: false,
        };
        match parse_to_ast(&self.text, &CollectOptions::default(), &options) {
            Ok(parsed) => match (parsed.value, &self.cut) {
                (Some(value), None) => Ok(value),
                (_, Some(cut)) => Err(cut.clone()),
                (None, None) => {
                    Err(Fault::new(self.position(0), "the file is empty", "it needs an object with \"tasks\""))
                }
            },
            Err(error) => Err(self.fault(&error)),
        }
    }

    fn fault(&self, error: &ParseError) -> Fault {
        use ParseErrorKind as Kind;
        let ends = matches!(
            error.kind(),
            Kind::UnterminatedObject
                | Kind::UnterminatedArray
                | Kind::String(ParseStringErrorKind::UnterminatedStringLiteral)
        );
        if let Some(cut) = &self.cut
            && (ends || error.range().end >= self.text.len())
        {
            return cut.clone();
        }
        let right = match error.kind() {
            Kind::ExpectedComma => "put a comma between two entries",
            Kind::ExpectedColonAfterObjectKey => "after a name come a colon and a value",
            Kind::UnexpectedTokenInObject => "names stand in quotes",
            Kind::UnexpectedComma => "a value or a name stands between two commas",
            Kind::UnexpectedCloseBrace | Kind::UnexpectedCloseBracket => "a value comes first",
            _ => "rt-app files are JSON with comments",
        };
        Fault::new(self.position(error.range().start), decapitalized(&error.kind().to_string()), right)
    }
}

fn decapitalized(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}

struct Open {
    at: usize,
    object: bool,
}

impl Open {
    /// The bracket's name, and the character that closes it.
    fn shape(&self) -> (&'static str, char) {
        if self.object { ("object", '}') } else { ("array", ']') }
    }
}

/// One pass over the text. It knows strings, comments and nesting, and leaves grammar to the parser.
struct Rewrite<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    open: Vec<Open>,
    /// Whether a string here would be a name.
    expects_name: bool,
    lines: Lines,
    inserted: Vec<usize>,
    bare_names: Vec<Position>,
    cut: Option<Fault>,
}

impl<'a> Rewrite<'a> {
    fn new(text: &'a str) -> Rewrite<'a> {
        let bytes = text.as_bytes();
        Rewrite {
            text,
            bytes,
            at: 0,
            out: Vec::with_capacity(bytes.len()),
            open: Vec::new(),
            expects_name: false,
            lines: Lines::of(bytes),
            inserted: Vec::new(),
            bare_names: Vec::new(),
            cut: None,
        }
    }

    /// Rewrites up to the end of the first value and returns where that is.
    fn run(&mut self) -> Result<usize, Fault> {
        match self.significant(0) {
            None => return Err(self.fault(self.bytes.len(), "the file is empty", "it needs an object with \"tasks\"")),
            Some(first) if self.bytes[first] != b'{' => {
                let found = format!("the file begins with {}", self.character(first));
                return Err(self.fault(first, found, "it begins with an object: {\"tasks\": ...}"));
            }
            Some(_) => {}
        }
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'{' | b'[' => self.opens()?,
                b'}' | b']' => {
                    self.closes()?;
                    if self.open.is_empty() {
                        return Ok(self.at);
                    }
                }
                b',' => {
                    self.copy(1);
                    self.expects_name = self.open.last().is_some_and(|open| open.object);
                }
                b':' => {
                    self.copy(1);
                    self.expects_name = false;
                }
                b' ' | b'\t' | b'\n' | b'\r' => self.copy(1),
                b'"' | b'\'' => self.string()?,
                b'/' => self.comment()?,
                b'-' | b'0'..=b'9' => self.number(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word()?,
                b'.' | b'+' => self.copy(1),
                _ => {
                    let found = format!("{} stands outside a string", self.character(self.at));
                    return Err(self.fault(
                        self.at,
                        found,
                        "JSON has only brackets, commas, colons, numbers and words there",
                    ));
                }
            }
        }
        if let (None, Some(open)) = (&self.cut, self.open.last()) {
            let (what, bracket) = open.shape();
            let found = format!("the file ends inside the {what} that begins at {}", self.lines.position(open.at));
            let right = format!("close it with '{bracket}'; is the file cut off?");
            self.cut = Some(self.fault(self.bytes.len(), found, right));
        }
        Ok(self.bytes.len())
    }

    fn fault(&self, at: usize, found: impl Into<String>, right: impl Into<String>) -> Fault {
        Fault::new(self.lines.position(at), found, right)
    }

    /// The character that begins at this byte, for a message.
    fn character(&self, at: usize) -> String {
        match self.text[at..].chars().next() {
            Some('\u{feff}') => "a byte order mark (U+FEFF)".into(),
            Some(c) if c.is_ascii_graphic() => format!("'{c}'"),
            Some(c) => format!("the character U+{:04X}", u32::from(c)),
            None => "nothing".into(),
        }
    }

    fn copy(&mut self, count: usize) {
        self.out.extend_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
    }

    fn opens(&mut self) -> Result<(), Fault> {
        if self.open.len() == DEEPEST_NESTING {
            return Err(self.fault(
                self.at,
                format!("brackets nest deeper than {DEEPEST_NESTING}"),
                "rt-app's reader goes no deeper",
            ));
        }
        let object = self.bytes[self.at] == b'{';
        self.open.push(Open { at: self.at, object });
        self.expects_name = object;
        self.copy(1);
        Ok(())
    }

    fn closes(&mut self) -> Result<(), Fault> {
        let found = char::from(self.bytes[self.at]);
        let open = self.open.pop().expect("the pass ends when the last bracket closes");
        let (what, bracket) = open.shape();
        if found != bracket {
            let found = format!("'{found}' stands inside the {what} that begins at {}", self.lines.position(open.at));
            return Err(self.fault(self.at, found, format!("close it with '{bracket}' first")));
        }
        self.copy(1);
        self.expects_name = false;
        Ok(())
    }

    /// The first offset from `from` on that is neither blank nor comment. An unclosed comment counts as significant.
    fn significant(&self, from: usize) -> Option<usize> {
        let mut at = from;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b'/' => match self.comment_end(at) {
                    Some(end) => at = end,
                    None => return Some(at),
                },
                _ => return Some(at),
            }
        }
        None
    }

    /// The offset after the comment at `at`: the end of the line, or after `*/`. `None` if it is no comment, or has no
    /// end.
    fn comment_end(&self, at: usize) -> Option<usize> {
        let rest = &self.bytes[at..];
        if rest.starts_with(b"//") {
            Some(rest.iter().position(|&b| b == b'\n').map_or(self.bytes.len(), |length| at + length))
        } else if rest.starts_with(b"/*") {
            rest[2..].windows(2).position(|pair| pair == b"*/").map(|length| at + 2 + length + 2)
        } else {
            None
        }
    }

    /// Blanks a comment out, so that both readers agree where it ends (in json-c a line comment ends at a line feed).
    fn comment(&mut self) -> Result<(), Fault> {
        match self.comment_end(self.at) {
            Some(end) => {
                self.out.resize(self.out.len() + end - self.at, b' ');
                self.at = end;
                Ok(())
            }
            None if self.bytes.get(self.at + 1) == Some(&b'*') => {
                Err(self.fault(self.at, "this comment has no end", "close it with */; is the file cut off?"))
            }
            None => Err(self.fault(self.at, "a '/' that begins no comment", "comments are /* ... */ or // ...")),
        }
    }

    /// Copies a string. A name without a value gets an empty one: `"suspend",` occurs in files made for older workgens.
    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let quote = self.bytes[start];
        let mut end = start + 1;
        loop {
            match self.bytes.get(end) {
                None => {
                    self.cut = Some(self.fault(
                        start,
                        "the string that begins here has no end",
                        "close its quotes; is the file cut off?",
                    ));
                    self.copy(self.bytes.len() - start);
                    return Ok(());
                }
                Some(&byte) if byte == quote => break,
                Some(b'\\') => {
                    if let Some(&escaped) = self.bytes.get(end + 1)
                        && !b"\"\\/bfnrtu".contains(&escaped)
                    {
                        let found = format!("\\ before {} in a string", self.character(end + 1));
                        return Err(self.fault(
                            end,
                            found,
                            "the escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX",
                        ));
                    }
                    end += 2;
                }
                Some(_) => end += 1,
            }
        }
        let bare = self.expects_name
            && self.bytes[start + 1..end].starts_with(b"suspend")
            && self.significant(end + 1).is_some_and(|next| matches!(self.bytes[next], b',' | b'}'));
        self.copy(end + 1 - start);
        if bare {
            self.bare_names.push(self.lines.position(start));
            self.inserted.push(self.out.len());
            self.out.extend_from_slice(EMPTY_VALUE);
        }
        Ok(())
    }

    /// Copies a number without its leading zeros, which json-c skips.
    fn number(&mut self) {
        let digits = &self.bytes[self.at + usize::from(self.bytes[self.at] == b'-')..];
        let zeros = digits.iter().take_while(|&&b| b == b'0').count();
        let kept = usize::from(!digits.get(zeros).is_some_and(u8::is_ascii_digit));
        let dropped = zeros.saturating_sub(kept);
        if dropped > 0 {
            self.out.resize(self.out.len() + dropped, b' ');
            if self.bytes[self.at] == b'-' {
                self.out.push(b'-');
                self.at += 1;
            }
            self.at += dropped;
        }
        let length = self.bytes[self.at..]
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'))
            .count();
        self.copy(length);
    }

    /// Writes json-c's keywords in jsonc-parser's spelling. Other words are refused, but one at the very end may be the
    /// beginning of a keyword that was cut.
    fn word(&mut self) -> Result<(), Fault> {
        let length = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let word = &self.text[self.at..self.at + length];
        let keyword = ["true", "false", "null", "NaN", "Infinity"].into_iter().find(|k| k.eq_ignore_ascii_case(word));
        if self.expects_name {
            return Err(self.fault(self.at, format!("a name without quotes: {word}"), "names stand in quotes"));
        }
        if keyword.is_none() && self.at + length < self.bytes.len() {
            let right = "strings stand in quotes; the words are true, false and null";
            return Err(self.fault(self.at, format!("the word {word} means nothing"), right));
        }
        self.out.extend_from_slice(keyword.unwrap_or(word).as_bytes());
        self.at += length;
        Ok(())
    }
}

/// The message for bytes that are not text.
pub(super) fn not_text(bytes: &[u8], error: std::str::Utf8Error) -> Fault {
    let at = error.valid_up_to();
    let lines = Lines::of(&bytes[..at]);
    let rest = quoted(&String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 4)]));
    Fault::new(lines.position(at), format!("these bytes are not UTF-8 text: {rest}"), "save the file as UTF-8")
}
