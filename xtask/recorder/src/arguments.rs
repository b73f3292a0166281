//! The command line.

use crate::random::Theme;
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub const USAGE: &str = "usage: cargo xtask record-fidelity --kernel VMLINUZ [OPTIONS] CASE.toml...

  --kernel VMLINUZ    the kernel to boot, of the version that the cases name; Debian's linux-image packages have it in boot/
  --qemu PROGRAM      qemu-system-x86_64, where it is not in PATH; version 8 or later (7.2 hangs when it counts instructions)
  --append WORDS      more of a kernel command line: an unknown parameter such as x=1 gives another sample of the same case
  --samples N         so many samples of each case (default 1): the second boots with sample=xx, and so on
  --keep FOLDER       keeps all that the guest sent, NAME.raw.txt for each case
  --limit SECONDS     of real time for each case (default 900)

Each case's recording is written where it says: recording = \"NAME.numbers.txt\", beside the case.";

pub const RANDOM_USAGE: &str = "usage: cargo xtask random-cases KERNEL FIRST LAST FOLDER [--changing]

  KERNEL              as `fairground kernels list` names it
  FIRST, LAST         the seeds; each is the same script under every kernel
  FOLDER              gets random-SEED.toml and the machine files that these cases need
  --changing          changing-SEED.toml: CPUs come and go, tasks change their CPUs, policies and groups, and groups their files

Next: cargo xtask record-fidelity --samples 3 --kernel VMLINUZ FOLDER/random-*.toml";

#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub kernel: PathBuf,
    pub qemu: Option<PathBuf>,
    pub append: String,
    pub samples: u32,
    pub keep: Option<PathBuf>,
    pub limit_s: u64,
    pub cases: Vec<String>,
}

/// # Errors
/// If the words are wrong: what is wrong.
pub fn parse(words: &[String]) -> Result<Arguments, String> {
    let arguments = any(words)?;
    if arguments.cases.is_empty() {
        return Err("no case; expected files that end in .toml".to_string());
    }
    Ok(arguments)
}

/// Where nothing is played.
///
/// # Errors
/// The same.
pub fn options(words: &[String]) -> Result<Arguments, String> {
    let arguments = any(words)?;
    match arguments.cases.first() {
        Some(case) => Err(format!("{case} means nothing here")),
        None => Ok(arguments),
    }
}

fn any(words: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        kernel: PathBuf::new(),
        qemu: None,
        append: String::new(),
        samples: 1,
        keep: None,
        limit_s: 900,
        cases: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            arguments.cases.push(word.clone());
            continue;
        }
        let mut value = || words.next().ok_or(format!("{word} without a value"));
        match word.as_str() {
            "--kernel" => arguments.kernel = value()?.into(),
            "--qemu" => arguments.qemu = Some(value()?.into()),
            "--append" => arguments.append.clone_from(value()?),
            "--keep" => arguments.keep = Some(value()?.into()),
            "--samples" => {
                let text = value()?;
                let samples = text.parse().ok().filter(|&samples| samples > 0);
                arguments.samples = samples.ok_or(format!("--samples {text}; expected a whole number above 0"))?;
            }
            "--limit" => {
                let text = value()?;
                let seconds = text.parse().ok().filter(|&seconds| seconds > 0);
                arguments.limit_s = seconds.ok_or(format!("--limit {text}; expected seconds, a whole number"))?;
            }
            _ => return Err(format!("{word} means nothing here")),
        }
    }
    if arguments.kernel.as_os_str().is_empty() {
        return Err("no kernel; expected --kernel VMLINUZ".to_string());
    }
    Ok(arguments)
}

/// What `cargo xtask random-cases` is told.
#[derive(Debug, PartialEq, Eq)]
pub struct RandomArguments {
    pub theme: Theme,
    pub kernel: String,
    pub seeds: RangeInclusive<u64>,
    pub folder: PathBuf,
}

/// # Errors
/// If the words are wrong: what is wrong.
pub fn random(words: &[String]) -> Result<RandomArguments, String> {
    let (theme, words) = match words {
        [rest @ .., word] if word == "--changing" => (Theme::Changing, rest),
        _ => (Theme::Steady, words),
    };
    let [kernel, first, last, folder] = words else {
        return Err(format!("{} words; expected four", words.len()));
    };
    let seed = |text: &str| text.parse().map_err(|_| format!("the seed {text}; expected a whole number"));
    Ok(RandomArguments { theme, kernel: kernel.clone(), seeds: seed(first)?..=seed(last)?, folder: folder.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Arguments, String> {
        parse(&text.split(' ').filter(|word| !word.is_empty()).map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_and_cases_are_told_apart() {
        let arguments = parsed("--kernel vmlinuz a.toml --limit 60 b.toml --append x=1").unwrap();
        assert_eq!((arguments.kernel, arguments.limit_s, arguments.append), ("vmlinuz".into(), 60, "x=1".to_string()));
        assert_eq!(arguments.cases, ["a.toml", "b.toml"]);
        for (text, message) in [
            ("a.toml", "no kernel"),
            ("--kernel k", "no case"),
            ("--kernel", "--kernel without a value"),
            ("--kernel k --limit soon a", "--limit soon"),
            ("--kernel k --samples 0 a", "--samples 0"),
            ("--colour k", "--colour means nothing"),
        ] {
            assert!(parsed(text).unwrap_err().starts_with(message), "{text}");
        }
    }
}
