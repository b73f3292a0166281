//! lib/kstrtox.c and lib/vsprintf.c: how the kernel reads numbers that somebody writes into a file.

use crate::errno::{Answer, Errno, Refusal};

/// kstrtox.c: kstrtoull() and kstrtoll() with base 0, as cgroup_file_write() calls them for a file of one number: `0x` begins a
/// hexadecimal number and `0` an octal one, and nothing but a newline may follow.
pub(crate) fn kstrtox<T: TryFrom<i128>>(text: &str) -> Answer<T> {
    let wrong = Refusal::new(Errno::EINVAL, "one whole number belongs into this file");
    let range = Refusal::new(Errno::ERANGE, "a number of 64 bits belongs into this file");
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (negative, number) = match text.strip_prefix('-') {
        // An unsigned number has no sign.
        Some(_) if T::try_from(-1).is_err() => return Err(wrong),
        Some(number) => (true, number),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = _parse_integer_fixup_radix(number);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Err(wrong);
    }
    let value = i128::from_str_radix(digits, base).map_err(|_| range)?;
    T::try_from(if negative { -value } else { value }).map_err(|_| range)
}

/// kstrtox.c: _parse_integer_fixup_radix(). The base that a number's first letters ask for, and its digits.
fn _parse_integer_fixup_radix(number: &str) -> (u32, &str) {
    match number.as_bytes() {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, &number[2..]),
        [b'0', ..] => (8, number),
        _ => (10, number),
    }
}

/// vsprintf.c: vsscanf(), its `%llu`: skips blanks and reads decimal digits, whatever follows them. Returns the number and what
/// follows; `None` if there are no digits. What does not fit into 64 bits is cut off.
pub(crate) fn scan_llu(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_ascii_start();
    let end = text.bytes().position(|letter| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let add = |number: u64, digit: u8| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
    (end > 0).then(|| (digits.bytes().fold(0, add), rest))
}

/// The same of its `%lld`, which may have a minus sign.
pub(crate) fn scan_lld(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_ascii_start();
    match text.strip_prefix('-') {
        Some(number) if number.starts_with(|letter: char| letter.is_ascii_digit()) => {
            scan_llu(number).map(|(number, rest)| ((number as i64).wrapping_neg(), rest))
        }
        Some(_) => None,
        None => scan_llu(text).map(|(number, rest)| (number as i64, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_in_the_base_that_it_asks_for() {
        let read = |text| kstrtox::<u64>(text).map_err(|refusal| refusal.errno);
        let numbers = [("100", 100), ("100\n", 100), ("+7", 7), ("0", 0), ("0100", 64), ("0x400", 1024), ("0XfF", 255)];
        for (text, number) in numbers {
            assert_eq!(read(text), Ok(number), "{text}");
        }
        assert_eq!(read("18446744073709551615"), Ok(u64::MAX));
        for text in ["", "0x", "089", "ten", "1.5", " 100", "100 ", "-1", "--1", "+-1", "1 2"] {
            assert_eq!(read(text), Err(Errno::EINVAL), "{text}");
        }
        for text in ["18446744073709551616", "0x1ffffffffffffffffffffffffffffffffffff"] {
            assert_eq!(read(text), Err(Errno::ERANGE), "{text}");
        }
        assert_eq!(kstrtox::<i64>("-0x10"), Ok(-16));
        assert_eq!(kstrtox::<i64>("-9223372036854775808"), Ok(i64::MIN));
    }

    #[test]
    fn a_scan_stops_where_the_number_ends() {
        assert_eq!(scan_llu("  12ab"), Some((12, "ab")));
        assert_eq!([scan_llu(""), scan_llu("-1"), scan_llu("x")], [None; 3]);
        assert_eq!(scan_llu("18446744073709551617"), Some((1, "")), "cut off");
        assert_eq!([scan_lld(" -3."), scan_lld("4 5")], [Some((-3, ".")), Some((4, " 5"))]);
        assert_eq!([scan_lld("- 3"), scan_lld("--3")], [None; 2]);
    }
}
