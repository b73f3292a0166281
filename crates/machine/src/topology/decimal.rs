//! Decimal texts as exact integers: nothing in a machine is a float.

/// A non-negative decimal number: `digits` / 10^`decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    pub digits: u128,
    pub decimals: u32,
}

/// Why a text is no usable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Not of the form `12` or `12.34`, with `_` allowed between digits.
    NotANumber,
    Negative,
    /// More than 24 digits.
    TooLong,
}

impl Decimal {
    /// Reads `12`, `12.34`, `1_000`, `+1`. Exponents, infinities and other bases are refused.
    pub fn parse(text: &str) -> Result<Decimal, DecimalError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('-') {
            // Minus zero is zero.
            let value = Decimal::unsigned(rest)?;
            return if value.digits == 0 { Ok(value) } else { Err(DecimalError::Negative) };
        }
        Decimal::unsigned(text.strip_prefix('+').unwrap_or(text))
    }

    fn unsigned(text: &str) -> Result<Decimal, DecimalError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit() || b == b'_')
                && !part.starts_with('_')
                && !part.ends_with('_')
        };
        if !plain(whole) || !plain(fraction) {
            return Err(DecimalError::NotANumber);
        }
        let fraction = fraction.trim_end_matches('0');
        let digits: String = whole.chars().chain(fraction.chars()).filter(char::is_ascii_digit).collect();
        let digits = digits.trim_start_matches('0');
        let decimals = fraction.bytes().filter(u8::is_ascii_digit).count() as u32;
        if digits.len() > 24 || decimals > 24 {
            return Err(DecimalError::TooLong);
        }
        let digits = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| DecimalError::NotANumber)? };
        Ok(Decimal { digits, decimals })
    }

    /// This number times `factor`; `None` unless that is a whole number that fits.
    pub fn times_exactly(self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        let divisor = 10u128.checked_pow(self.decimals)?;
        if !product.is_multiple_of(divisor) {
            return None;
        }
        u64::try_from(product / divisor).ok()
    }

    /// The product of two numbers, rounded to the nearest whole number, halves upwards; `None` if it does not fit.
    pub fn times_rounded(self, other: Decimal) -> Option<u64> {
        let product = self.digits.checked_mul(other.digits)?;
        let divisor = 10u128.checked_pow(self.decimals + other.decimals)?;
        u64::try_from(product.checked_add(divisor / 2)? / divisor).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let ps = |text: &str| Decimal::parse(text).unwrap().times_exactly(1_000);
        assert_eq!(ps("7.6"), Some(7_600));
        assert_eq!(ps("0.080"), Some(80));
        assert_eq!(ps("1_000"), Some(1_000_000));
        assert_eq!(ps("0.0004"), None);
        assert_eq!(ps("-0.0"), Some(0));
        assert_eq!(ps("18446744073709551615"), None);
    }

    #[test]
    fn what_is_no_plain_number_is_refused() {
        for text in ["", ".", "1.", ".5", "1e3", "inf", "nan", "0x10", "1__", "_1", "--1", "1.2.3"] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotANumber), "{text}");
        }
        assert_eq!(Decimal::parse("-2"), Err(DecimalError::Negative));
        assert_eq!(Decimal::parse("1000000000000000000000000"), Err(DecimalError::TooLong));
        assert_eq!(Decimal::parse("0.0000000000000000000000001"), Err(DecimalError::TooLong));
    }

    #[test]
    fn products_round_to_the_nearest() {
        let d = |text: &str| Decimal::parse(text).unwrap();
        assert_eq!(d("10.000000").times_rounded(d("1.600000")), Some(16));
        assert_eq!(d("10").times_rounded(d("2.25")), Some(23));
        assert_eq!(d("999999999999999999999999").times_rounded(d("999999999999999999999999")), None);
    }
}
