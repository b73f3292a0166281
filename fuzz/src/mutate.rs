//! Changes valid texts by tokens, lines and brackets, so that most of the results are still read to the end.

use units::Prng;

/// Numbers at the limits of types, bounds and formats.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "+1",
    "00",
    "1.5",
    "1e3",
    "1e999",
    "0x10",
    "1_000",
    "127",
    "255",
    "256",
    "1023",
    "1024",
    "1025",
    "8191",
    "8192",
    "8193",
    "32767",
    "65535",
    "65536",
    "100000",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999999",
    "0.0000000000000000000000000000000000000001",
    "nan",
    "inf",
];

/// Text that stands between tokens, or should not.
const ODD: &[&str] = &[
    "\0",
    "\u{feff}",
    "\u{e9}",
    "\u{1f600}",
    "\t",
    "\r\n",
    "\n",
    " ",
    "\u{a0}",
    "\u{200b}",
    "\\",
    "\"",
    "'",
    "`",
    "\x1b",
];

/// How often a piece is repeated when it is repeated to excess.
const MANY: &[u64] = &[2, 3, 10, 100, 1_000, 20_000];
/// The most bytes of a text; larger files have tests of their own.
const LONGEST: usize = 200_000;

/// Makes changed texts from valid ones.
pub struct Mutator {
    /// The valid texts, as tokens.
    seeds: Vec<Vec<String>>,
    words: &'static [&'static str],
}

impl Mutator {
    /// `words` are words that mean something to the reader.
    pub fn new(seeds: &[String], words: &'static [&'static str]) -> Mutator {
        assert!(!seeds.is_empty(), "there must be a text to change");
        Mutator { seeds: seeds.iter().map(|seed| tokens(seed)).collect(), words }
    }

    /// One changed text. Sometimes bytes are changed too, so it may not be UTF-8.
    pub fn text(&self, chance: &mut Prng) -> Vec<u8> {
        let mut text = self.pick(chance).clone();
        let changes = 1 + chance.below(4) * chance.below(3);
        for _ in 0..changes {
            self.change(&mut text, chance);
        }
        let mut bytes = text.concat().into_bytes();
        if chance.below(8) == 0 && !bytes.is_empty() {
            let at = chance.below(bytes.len() as u64) as usize;
            match chance.below(3) {
                0 => bytes[at] ^= 1 << chance.below(8),
                1 => bytes.truncate(at),
                _ => drop(bytes.remove(at)),
            }
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn pick(&self, chance: &mut Prng) -> &Vec<String> {
        &self.seeds[chance.below(self.seeds.len() as u64) as usize]
    }

    /// A word, a number, something odd, or a token of any valid text.
    fn token(&self, chance: &mut Prng) -> String {
        let one = |of: &[&str], chance: &mut Prng| of[chance.below(of.len() as u64) as usize].to_string();
        match chance.below(4) {
            0 if !self.words.is_empty() => one(self.words, chance),
            1 => one(NUMBERS, chance),
            2 => one(ODD, chance),
            _ => {
                let text = self.pick(chance);
                text.get(chance.below(text.len().max(1) as u64) as usize).cloned().unwrap_or_default()
            }
        }
    }

    fn change(&self, text: &mut Vec<String>, chance: &mut Prng) {
        if text.is_empty() {
            text.push(self.token(chance));
        }
        let any = |chance: &mut Prng, text: &[String]| chance.below(text.len() as u64) as usize;
        let at = any(chance, text);
        match chance.below(13) {
            0 => drop(text.remove(at)),
            1 => text.insert(at, self.token(chance)),
            2 | 3 => text[at] = self.token(chance),
            4 => {
                // Numbers are preferred, because they have limits.
                let numbers: Vec<usize> = (0..text.len()).filter(|&at| is_number(&text[at])).collect();
                if let Some(&at) = numbers.get(chance.below(numbers.len().max(1) as u64) as usize) {
                    text[at] = NUMBERS[chance.below(NUMBERS.len() as u64) as usize].to_string();
                }
            }
            5 => {
                let other = any(chance, text);
                text.swap(at, other);
            }
            6 => text.truncate(at),
            7 => {
                // A piece is removed, doubled, or moved elsewhere.
                let piece: Vec<String> = text[piece(text, at, chance)].to_vec();
                let to = any(chance, text);
                match chance.below(3) {
                    0 => drop(text.drain(range(text, at, piece.len()))),
                    1 => drop(text.splice(at..at, piece)),
                    _ => drop(text.splice(to..to, piece)),
                }
            }
            8 => {
                let other = self.pick(chance);
                let from = any(chance, other);
                let piece = other[piece(other, from, chance)].to_vec();
                text.splice(at..at, piece);
            }
            9 => {
                // To excess: a token, or an opening bracket that is never closed.
                let token = if chance.below(2) == 0 { text[at].clone() } else { one_of("[{(<", chance) };
                let times = MANY[chance.below(MANY.len() as u64) as usize] as usize;
                let times = times.min(LONGEST / token.len().max(1));
                text.splice(at..at, std::iter::repeat_n(token, times));
            }
            10 => text[at].push_str(&self.token(chance)),
            11 => {
                let cut = text[at].chars().count() as u64;
                let kept = chance.below(cut.max(1)) as usize;
                text[at] = text[at].chars().take(kept).collect();
            }
            _ => {
                let upper = text[at].to_uppercase();
                text[at] = if upper == text[at] { text[at].to_lowercase() } else { upper };
            }
        }
    }
}

fn one_of(letters: &str, chance: &mut Prng) -> String {
    letters.chars().nth(chance.below(letters.len() as u64) as usize).unwrap_or('[').to_string()
}

/// A piece that begins at a token: a few tokens, the rest of the line, or everything up to the bracket that closes the
/// next opening one.
fn piece(text: &[String], at: usize, chance: &mut Prng) -> std::ops::Range<usize> {
    let end = match chance.below(3) {
        0 => at + 1 + chance.below(8) as usize,
        1 => text[at..].iter().position(|token| token == "\n").map_or(text.len(), |found| at + found + 1),
        _ => {
            let mut depth = 0_i64;
            let closes = |token: &String| {
                depth += i64::from(matches!(token.as_str(), "{" | "[" | "(" | "<"));
                depth -= i64::from(matches!(token.as_str(), "}" | "]" | ")" | ">"));
                depth <= 0 && matches!(token.as_str(), "}" | "]" | ")" | ">")
            };
            text[at..].iter().position(closes).map_or(text.len(), |found| at + found + 1)
        }
    };
    at..end.min(text.len())
}

fn range(text: &[String], at: usize, length: usize) -> std::ops::Range<usize> {
    at..(at + length).min(text.len())
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit())
}

/// Words, numbers and single characters; joined, they are the text again.
fn tokens(text: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_ascii_digit() => 0,
        c if c.is_alphanumeric() || c == '_' => 1,
        ' ' => 2,
        _ => 3,
    };
    let mut tokens: Vec<String> = Vec::new();
    let mut last = 3;
    for c in text.chars() {
        let this = kind(c);
        match tokens.last_mut() {
            Some(token) if this == last && this != 3 => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        last = this;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_text() {
        let text = "a_1 = [12,  \"x\u{e9}\"]\n";
        assert_eq!(tokens(text).concat(), text);
        assert_eq!(tokens(text)[..4], ["a_", "1", " ", "="]);
    }

    #[test]
    fn the_same_case_is_the_same_text_and_others_differ() {
        let mutator = Mutator::new(&["machine = \"a\"\nseed = 3\n".to_string()], &["iterations"]);
        let text = |case| mutator.text(&mut Prng::stream(1, "t", case));
        assert_eq!(text(5), text(5));
        let different: std::collections::BTreeSet<Vec<u8>> = (0..500).map(text).collect();
        assert!(different.len() > 400, "{}", different.len());
        assert!(different.iter().all(|text| text.len() <= LONGEST));
        assert!(different.iter().any(|text| std::str::from_utf8(text).is_err()));
        assert!(different.iter().any(|text| text.len() > 20_000));
    }
}
