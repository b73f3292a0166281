//! lib/bitmap.c: bitmap_parselist(): a list of CPUs on the kernel's command line.

use units::{CpuId, CpuMask};

/// What such a list may hold beside numbers and ranges of them, by the kernel's version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CpuLists {
    Ranges,
    /// Since v4.9 a range may be followed by `:2/25`: of each 25 CPUs the first two (2d13e6ca4877).
    Parts,
    /// Since v5.13 `N` is the last CPU, since v5.14 `all` are all of them.
    Names,
}

/// A range of CPUs, and how many of each group in it are meant.
struct Region {
    start: usize,
    end: usize,
    used: usize,
    group: usize,
}

/// bitmap.c: bitmap_parselist(): the CPUs of a list on a machine with `nr_cpus`.
///
/// # Errors
/// What was found instead of a list that a kernel with these rules reads, on this machine.
///
/// Differs: until v5.0 blanks within the list were an error.
#[doc(alias = "cpulist_parse")]
pub fn bitmap_parselist(text: &str, nr_cpus: usize, rules: CpuLists) -> Result<CpuMask, String> {
    let mut cpus = CpuMask::default();
    for part in text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|part| !part.is_empty()) {
        let region = Parser { rest: part, last: nr_cpus - 1, rules }.region().ok_or_else(|| later(part, rules))?;
        bitmap_check_region(&region, part, nr_cpus)?;
        let of_group = |cpu: usize| (cpu - region.start) % region.group < region.used;
        (region.start..=region.end).filter(|&cpu| of_group(cpu)).for_each(|cpu| cpus.set(CpuId::new(cpu)));
    }
    Ok(cpus)
}

/// What is wrong with a part of a list: perhaps only that the kernel is too old for it.
fn later(part: &str, rules: CpuLists) -> String {
    let reads = |rules| Parser { rest: part, last: 0, rules }.region().is_some();
    let since = [(CpuLists::Parts, "v4.9"), (CpuLists::Names, "v5.13 (`N`) and v5.14 (`all`)")];
    match since.into_iter().find(|(later, _)| *later > rules && reads(*later)) {
        Some((_, since)) => format!("`{}`, which kernels read since {since},", crate::mistake::excerpt(part, 24)),
        None => format!("`{}`", crate::mistake::excerpt(part, 24)),
    }
}

/// bitmap.c: bitmap_check_region().
fn bitmap_check_region(region: &Region, part: &str, nr_cpus: usize) -> Result<(), String> {
    if region.start > region.end || region.group == 0 || region.used > region.group {
        return Err(format!("`{}`", crate::mistake::excerpt(part, 24)));
    }
    match region.end {
        end if end >= nr_cpus => Err(format!("CPU {}", region.start.max(nr_cpus))),
        _ => Ok(()),
    }
}

/// What is left to read of a part.
struct Parser<'t> {
    rest: &'t str,
    last: usize,
    rules: CpuLists,
}

impl Parser<'_> {
    /// bitmap.c: bitmap_parse_region().
    #[doc(alias = "bitmap_parse_region")]
    fn region(mut self) -> Option<Region> {
        let all = self.rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("all"));
        let (start, end) = if all && self.rules >= CpuLists::Names {
            self.rest = &self.rest[3..];
            (0, self.last)
        } else {
            let start = self.bitmap_getnum()?;
            if self.rest.is_empty() {
                return Some(Region { start, end: start, used: 1, group: 1 });
            }
            self.takes('-')?;
            (start, self.bitmap_getnum()?)
        };
        if self.rest.is_empty() {
            return Some(Region { start, end, used: 1, group: 1 });
        }
        if self.rules < CpuLists::Parts {
            return None;
        }
        self.takes(':')?;
        let used = self.bitmap_getnum()?;
        self.takes('/')?;
        let group = self.bitmap_getnum()?;
        self.rest.is_empty().then_some(Region { start, end, used, group })
    }

    fn takes(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    /// bitmap.c: bitmap_getnum().
    fn bitmap_getnum(&mut self) -> Option<usize> {
        if self.rules >= CpuLists::Names
            && let Some(rest) = self.rest.strip_prefix('N')
        {
            self.rest = rest;
            return Some(self.last);
        }
        let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let number: u32 = self.rest[..digits].parse().ok()?;
        self.rest = &self.rest[digits..];
        Some(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, rules: CpuLists) -> Result<String, String> {
        bitmap_parselist(text, 8, rules).map(|cpus| cpus.list())
    }

    #[test]
    fn lists_are_read_as_each_kernel_reads_them() {
        for (text, cpus) in [("1", "1"), ("1,3-5", "1,3-5"), ("3,,3-4,", "3-4"), ("0-0", "0")] {
            for rules in [CpuLists::Ranges, CpuLists::Parts, CpuLists::Names] {
                assert_eq!(read(text, rules).as_deref(), Ok(cpus), "{text}");
            }
        }
        for (text, cpus) in [("0-6:1/2", "0,2,4,6"), ("1-7:2/3,0", "0-2,4-5,7"), ("2-7:9/9", "2-7")] {
            assert!(read(text, CpuLists::Ranges).unwrap_err().contains("which kernels read since v4.9"), "{text}");
            assert_eq!(read(text, CpuLists::Parts).as_deref(), Ok(cpus), "{text}");
            assert_eq!(read(text, CpuLists::Names).as_deref(), Ok(cpus), "{text}");
        }
        for (text, cpus) in [("N", "7"), ("5-N", "5-7"), ("all", "0-7"), ("ALL:1/4", "0,4"), ("0-N:1/N", "0,7")] {
            assert!(read(text, CpuLists::Parts).unwrap_err().contains("since v5.13 (`N`)"), "{text}");
            assert_eq!(read(text, CpuLists::Names).as_deref(), Ok(cpus), "{text}");
        }
    }

    #[test]
    fn what_no_kernel_reads_is_an_error() {
        for text in ["x", "3-1", "1-", "-1", "1-3:2", "1-3:0/0", "1-3:3/2", "1:1/2", "all-3", "n", "1-3:1/2x", "1;2"] {
            assert!(read(text, CpuLists::Names).unwrap_err().starts_with('`'), "{text}");
        }
        assert_eq!(read("2-8", CpuLists::Names), Err("CPU 8".to_string()));
        assert_eq!(read("9", CpuLists::Names), Err("CPU 9".to_string()));
    }
}
