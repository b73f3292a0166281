//! The kernel's answers to requests that it refuses.

use std::fmt;

macro_rules! errnos {
    ($( $name:ident = $number:literal: $doc:literal; )+) => {
        /// asm-generic/errno-base.h, errno.h: the errors with which the scheduler answers.
        #[allow(clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Errno { $( #[doc = $doc] $name = $number, )+ }

        impl Errno {
            pub fn name(self) -> &'static str {
                match self { $( Errno::$name => stringify!($name), )+ }
            }

            /// The meaning in words.
            pub fn meaning(self) -> &'static str {
                match self { $( Errno::$name => $doc, )+ }
            }

            /// The error that a system call returned, if it is one of these: the value is minus its number.
            pub fn of_answer(value: i64) -> Option<Errno> {
                match value.checked_neg()? {
                    $( $number => Some(Errno::$name), )+
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    E2BIG = 7: "argument list too long";
    EAGAIN = 11: "try again";
    EBUSY = 16: "device or resource busy";
    EEXIST = 17: "file exists";
    EINVAL = 22: "invalid argument";
    ENOENT = 2: "no such file";
    EOPNOTSUPP = 95: "operation not supported";
    EPERM = 1: "operation not permitted";
    ERANGE = 34: "result out of range";
}

/// The answer to a request that the kernel may refuse.
pub type Answer<T = ()> = Result<T, Refusal>;

/// A refused request: the kernel's answer, and what was wrong, in words for the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub errno: Errno,
    pub why: &'static str,
}

impl Refusal {
    pub const fn new(errno: Errno, why: &'static str) -> Refusal {
        Refusal { errno, why }
    }

    /// What a refused system call returns.
    pub fn value(self) -> i64 {
        -(self.errno as i64)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.errno.name(), self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_kernels_answer() {
        let refusal = Refusal::new(Errno::ERANGE, "from 1 to 10000");
        assert_eq!((refusal.to_string().as_str(), refusal.value()), ("ERANGE: from 1 to 10000", -34));
        assert_eq!(Errno::of_answer(refusal.value()), Some(Errno::ERANGE));
        assert_eq!([0, 34, -3, i64::MIN].map(Errno::of_answer), [None; 4]);
        assert_eq!(Errno::EBUSY.meaning(), "device or resource busy");
    }
}
