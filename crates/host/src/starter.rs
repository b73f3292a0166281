//! Starts this program as a child of itself, and makes the child end with its parent.

use crate::Error;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::path::PathBuf;
use std::process::Command;

/// How to start this program as a child of itself; [`child`](crate::child::child) is then called with the words that
/// follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starter {
    pub program: PathBuf,
    pub words: Vec<String>,
}

impl Starter {
    /// A child that ends when the thread that starts it ends, however that happens: nothing else would end a busy
    /// child. It is told its parent's number.
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words).arg(std::process::id().to_string()).args(words);
        command
    }
}

/// From now on the kernel ends this process when its parent ends; `parent` is the number that the parent told.
///
/// # Errors
/// If the parent ended before the kernel was asked, so that this process is now the child of another.
pub fn end_with(parent: Pid) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Error::of_system("ending with the parent", error))?;
    if getppid() == Some(parent) {
        return Ok(());
    }
    Err(Error::new("being a benchmark's child", "a parent that has ended", "one that is still there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_whose_it_is() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let starter = Starter { program: "/bin/echo".into(), words: words(&["host-child", "--"]) };
        let said = starter.command(&words(&["wait"])).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), format!("host-child -- {} wait\n", std::process::id()));
    }
}
