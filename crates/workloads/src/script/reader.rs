//! A line of a script, read word by word.

use super::parse::ScriptError;
use sched::attr::{ClampRequest, SchedAttr, SchedFlags};
use sched::sched::Policy;
use units::Ns;

/// The longest time: an hour.
const LONGEST: Ns = Ns(3_600_000_000_000);
/// The most bytes of memory, and the most bytes touched in a second.
pub(super) const MOST_MEMORY: u64 = 1 << 40;

/// A line, and how far it has been read.
pub(super) struct Reader<'a> {
    pub whole: &'a str,
    pub rest: &'a str,
    pub line: u32,
}

impl<'a> Reader<'a> {
    /// The next word, up to a blank or one of `:;()`; empty where one of these stands.
    pub fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| c.is_whitespace() || ":;()".contains(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        self.rest = self.rest[end..].trim_start();
        word
    }

    pub fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    /// The column of `piece`, a part of the line, counted from 1.
    pub fn column(&self, piece: &str) -> u32 {
        self.columns(&[self.offset(piece)])[0]
    }

    /// The same in bytes, counted from 0.
    pub fn offset(&self, piece: &str) -> usize {
        // Every piece is a slice of the line.
        (piece.as_ptr() as usize).saturating_sub(self.whole.as_ptr() as usize).min(self.whole.len())
    }

    /// The columns of ascending byte offsets, in one pass: a line may have many steps.
    pub fn columns(&self, offsets: &[usize]) -> Vec<u32> {
        let (mut reached, mut column) = (0, 1);
        let column_of = |&offset: &usize| {
            column += self.whole[reached..offset].chars().count() as u32;
            reached = offset;
            column
        };
        offsets.iter().map(column_of).collect()
    }

    /// An error at `piece` of the line.
    pub fn wrong_at(&self, piece: &str, found: String, expected: &str) -> ScriptError {
        let column = self.column(piece);
        ScriptError { line: self.line, column, found, expected: expected.to_string() }
    }

    /// An error at the place that reading has reached.
    pub fn wrong(&self, found: String, expected: &str) -> ScriptError {
        self.wrong_at(self.rest, found, expected)
    }

    pub fn number(&self, text: &str, low: i64, high: i64) -> Result<i64, ScriptError> {
        match text.parse() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.wrong_at(text, format!("`{text}`"), &format!("a whole number from {low} to {high}"))),
        }
    }

    /// A number whose range the kernel checks too.
    pub fn or_einval(&self, text: &str, low: i64, high: i64) -> Result<i64, ScriptError> {
        self.number(text, low, high).map_err(|error| {
            let expected = format!("{}: the kernel answers EINVAL to others", error.expected);
            ScriptError { expected, ..error }
        })
    }

    /// `2GB/s`.
    pub fn rate(&mut self) -> Result<u64, ScriptError> {
        let rate = self.word();
        self.bytes(rate, "/s")
    }

    /// `512MB`, with the suffix `behind`.
    pub fn bytes(&self, text: &str, behind: &str) -> Result<u64, ScriptError> {
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let scale = match unit.strip_suffix(behind) {
            Some("KB") => Some(1u64 << 10),
            Some("MB") => Some(1 << 20),
            Some("GB") => Some(1 << 30),
            _ => None,
        };
        let bytes = scale.and_then(|scale| digits.parse::<u64>().ok()?.checked_mul(scale));
        match bytes {
            Some(bytes) if (1..=MOST_MEMORY).contains(&bytes) => Ok(bytes),
            _ => {
                let expected =
                    format!("so much as 256KB{behind}, 512MB{behind} or 2GB{behind}, at most 1024GB{behind}");
                Err(self.wrong_at(text, format!("`{text}`"), &expected))
            }
        }
    }

    /// A utilization clamp, or `none`.
    pub fn clamp(&self, text: &str) -> Result<ClampRequest, ScriptError> {
        match text {
            "none" => Ok(ClampRequest::Reset),
            _ => match self.number(text, 0, 1024) {
                Ok(clamp) => Ok(ClampRequest::Set(clamp as u32)),
                Err(error) => Err(ScriptError { expected: format!("{}, or none", error.expected), ..error }),
            },
        }
    }

    /// `normal`, `fifo/50`.
    pub fn policy(&self, text: &'a str, nice: i32) -> Result<SchedAttr, ScriptError> {
        let (name, rest) = text.split_once('/').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let policy = match name {
            "normal" => Policy::Normal,
            "batch" => Policy::Batch,
            "idle" => Policy::Idle,
            "fifo" => Policy::Fifo,
            "rr" => Policy::Rr,
            "deadline" | "reclaim" => return self.deadline(text, rest.unwrap_or_default(), name == "reclaim"),
            _ => {
                let expected =
                    "normal, batch, idle, fifo/N, rr/N, deadline/RUNTIME/DEADLINE or reclaim/RUNTIME/DEADLINE";
                return Err(self.wrong_at(text, format!("`{text}`"), expected));
            }
        };
        let mut attr = SchedAttr::fair(policy, nice);
        match (policy.rt_policy(), rest) {
            (true, Some(rest)) => attr.sched_priority = self.or_einval(rest, 1, 99)? as u32,
            (true, None) => {
                let expected = format!("{name}/N with a priority from 1 to 99");
                return Err(self.wrong_at(text, format!("`{text}`"), &expected));
            }
            (false, Some(rest)) => return Err(self.wrong_at(rest, format!("`/{rest}`"), &format!("just `{name}`"))),
            (false, None) => {}
        }
        Ok(attr)
    }

    /// `2ms/8ms/10ms`: runtime, deadline and, if it differs from the deadline, period.
    pub fn deadline(&self, text: &'a str, times: &'a str, reclaim: bool) -> Result<SchedAttr, ScriptError> {
        let wrong = || {
            let expected = "RUNTIME/DEADLINE or RUNTIME/DEADLINE/PERIOD behind the policy's name";
            self.wrong_at(text, format!("`{text}`"), expected)
        };
        if !(2..=3).contains(&times.split('/').count()) {
            return Err(wrong());
        }
        let mut given = times.split('/');
        let mut next = |default| given.next().map_or(Ok(default), |time| self.time(time, 1));
        let (runtime, deadline) = (next(Ns::ZERO)?, next(Ns::ZERO)?);
        let period = next(deadline)?;
        let sched_flags = SchedFlags { reclaim, ..SchedFlags::default() };
        let attr = SchedAttr { sched_policy: Policy::Deadline, sched_flags, ..SchedAttr::NORMAL };
        Ok(SchedAttr { sched_runtime: runtime.0, sched_deadline: deadline.0, sched_period: period.0, ..attr })
    }

    pub fn time(&self, text: &str, low: u64) -> Result<Ns, ScriptError> {
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let unit_ns = match unit {
            "ns" => Some(1),
            "us" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            _ => None,
        };
        let time = unit_ns.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
        match time {
            Some(time) if (low..=LONGEST.0).contains(&time) => Ok(Ns(time)),
            _ => {
                let above = if low > 0 { " above 0" } else { "" };
                let expected = format!("a time{above} such as 3ms: ns, us, ms or s, up to an hour");
                Err(self.wrong_at(text, format!("`{text}`"), &expected))
            }
        }
    }
}
