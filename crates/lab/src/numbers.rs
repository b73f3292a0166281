//! Numbers as text. A value that rounds to zero gets no sign: `-0.00` would only say that somebody computed it.
//!
//! MMTests's own tables ([`crate::mmtests`]) do not use this module: the scripts print such zeros, and the tables match
//! them exactly.

/// With `decimals` digits after the point.
pub(crate) fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if is_nothing(zero) => zero.to_string(),
        _ => text,
    }
}

/// The same, with a plus sign for values above zero.
pub(crate) fn signed(value: f64, decimals: usize) -> String {
    if is_zero(value, decimals) { plain(value, decimals) } else { format!("{value:+.decimals$}") }
}

/// Whether it prints as zero.
pub(crate) fn is_zero(value: f64, decimals: usize) -> bool {
    is_nothing(&plain(value, decimals))
}

fn is_nothing(digits: &str) -> bool {
    digits.bytes().all(|letter| matches!(letter, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_no_sign() {
        for zero in [0.0, -0.0, 0.004, -0.004, -1e-30] {
            assert_eq!((plain(zero, 2).as_str(), signed(zero, 2).as_str()), ("0.00", "0.00"), "{zero}");
            assert!(is_zero(zero, 2));
        }
        assert_eq!((plain(-0.4, 0), signed(0.2, 0)), ("0".to_string(), "0".to_string()));
    }

    #[test]
    fn others_have_theirs() {
        for (value, decimals, unsigned, with_sign) in [
            (-0.006, 2, "-0.01", "-0.01"),
            (0.3, 1, "0.3", "+0.3"),
            (-10.0, 0, "-10", "-10"),
            (100.0, 1, "100.0", "+100.0"),
        ] {
            assert_eq!((plain(value, decimals).as_str(), signed(value, decimals).as_str()), (unsigned, with_sign));
            assert!(!is_zero(value, decimals));
        }
        assert_eq!((signed(f64::NAN, 1).as_str(), plain(f64::INFINITY, 1).as_str()), ("NaN", "inf"));
    }
}
