//! Sets of CPUs as Linux and hwloc write them: lists (`0-3,8`) and hexadecimal masks (`00000410,41041041`).

use units::{CpuId, CpuMask, NR_CPUS};

/// A text that is no set of CPUs; `column` counts characters from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetError {
    pub column: u32,
    pub found: String,
    pub expected: String,
}

impl SetError {
    fn new(text: &str, at: &str, expected: &str) -> SetError {
        let offset = text.len() - at.len();
        let found = match at.chars().next() {
            Some(_) => format!("`{}`", super::error::excerpt(at, 24)),
            None => "the end of the text".to_string(),
        };
        SetError { column: text[..offset].chars().count() as u32 + 1, found, expected: expected.to_string() }
    }
}

const LIST: &str = "a list of CPUs such as 0-3,8";
const MASK: &str = "a mask such as 0x00000410,0x41041041";

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    // Twenty digits may overflow, nineteen cannot; both are beyond any CPU's number.
    (end > 0).then(|| (text[..end].parse().unwrap_or(u64::MAX), &text[end..]))
}

/// Numbers and ranges of numbers with commas between them, as in `cpulist` files; the empty text is the empty set.
pub fn parse_list(text: &str) -> Result<CpuMask, SetError> {
    let mut set = CpuMask::default();
    let mut rest = text.trim();
    let text = text.trim_end();
    if rest.is_empty() {
        return Ok(set);
    }
    let beyond = format!("CPU numbers up to {}", NR_CPUS - 1);
    loop {
        let item = rest;
        let (first, after) = number(item).ok_or_else(|| SetError::new(text, item, LIST))?;
        let (last, after) = match after.strip_prefix('-') {
            Some(end) => number(end).ok_or_else(|| SetError::new(text, end, LIST))?,
            None => (first, after),
        };
        if first > last {
            return Err(SetError::new(text, item, "a range that ends where it begins or later"));
        }
        if last >= NR_CPUS as u64 {
            return Err(SetError::new(text, item, &beyond));
        }
        for cpu in first..=last {
            set.set(CpuId::new(cpu as usize));
        }
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(set),
            None => return Err(SetError::new(text, after, LIST)),
        }
    }
}

/// Words of 32 bits in hexadecimal, most significant first, with commas between them: the kernel's `cpumap` files and,
/// with `0x` before each word, hwloc's cpusets. A word left empty is 0, as hwloc has it.
pub fn parse_mask(text: &str) -> Result<CpuMask, SetError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(SetError::new(text, trimmed, MASK));
    }
    let words: Vec<&str> = trimmed.split(',').collect();
    let mut set = CpuMask::default();
    for (place, word) in words.iter().rev().enumerate() {
        let here = &text[word.as_ptr() as usize - text.as_ptr() as usize..];
        let digits = word.strip_prefix("0x").unwrap_or(word);
        if digits.is_empty() && words.len() > 1 {
            continue;
        }
        if digits.contains("...") {
            return Err(SetError::new(text, here, "a finite mask"));
        }
        if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(SetError::new(text, here, MASK));
        }
        let bits = u32::from_str_radix(digits, 16).map_err(|_| SetError::new(text, here, MASK))?;
        for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
            let cpu = place * 32 + bit;
            if cpu >= NR_CPUS {
                return Err(SetError::new(text, here, &format!("CPU numbers up to {}", NR_CPUS - 1)));
            }
            set.set(CpuId::new(cpu));
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_kernels() {
        assert_eq!(parse_list("0-3,8\n").unwrap().list(), "0-3,8");
        assert_eq!(parse_list("\n").unwrap().list(), "");
        assert_eq!(parse_list("8191").unwrap().list(), "8191");
    }

    #[test]
    fn masks_are_the_kernels_and_hwlocs() {
        assert_eq!(parse_mask("00000001,80000003\n").unwrap().list(), "0-1,31-32");
        assert_eq!(parse_mask("0x00000410,0x41041041").unwrap().list(), "0,6,12,18,24,30,36,42");
        assert_eq!(parse_mask("0x1,,0x0").unwrap().list(), "64");
        assert_eq!(parse_mask("ff").unwrap().list(), "0-7");
        assert_eq!(parse_mask("0x0").unwrap().list(), "");
    }

    #[test]
    fn bad_sets_say_where() {
        let wrong = |text: &str| {
            let e = parse_list(text).unwrap_err();
            format!("{}: {} / {}", e.column, e.found, e.expected)
        };
        assert_eq!(wrong("0-3,x"), "5: `x` / a list of CPUs such as 0-3,8");
        assert_eq!(wrong("0-"), "3: the end of the text / a list of CPUs such as 0-3,8");
        assert_eq!(wrong("0,7-3"), "3: `7-3` / a range that ends where it begins or later");
        assert_eq!(wrong("1,0-4000000000"), "3: `0-4000000000` / CPU numbers up to 8191");
        assert_eq!(wrong("99999999999999999999999"), "1: `99999999999999999999999` / CPU numbers up to 8191");
        assert_eq!(wrong("-1"), "1: `-1` / a list of CPUs such as 0-3,8");
        let wrong = |text: &str| {
            let e = parse_mask(text).unwrap_err();
            format!("{}: {} / {}", e.column, e.found, e.expected)
        };
        assert_eq!(wrong("0xf...f,0x1"), "1: `0xf...f,0x1` / a finite mask");
        assert_eq!(wrong("0x1,0xg"), "5: `0xg` / a mask such as 0x00000410,0x41041041");
        assert_eq!(wrong(""), "1: the end of the text / a mask such as 0x00000410,0x41041041");
        assert_eq!(wrong("123456789"), "1: `123456789` / a mask such as 0x00000410,0x41041041");
        assert!(parse_mask(&format!("1{}", ",0".repeat(256))).is_err());
    }
}
