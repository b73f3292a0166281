//! Pipes, and the processes at their ends.

use crate::Error;
use crate::starter::Starter;
use rustix::io::{Errno, read, write};
use rustix::process::{Resource, Rlimit, WaitOptions, getrlimit, setrlimit, wait};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The two ends of a pipe.
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

impl Pipe {
    pub fn new() -> Result<Pipe, Error> {
        let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (read, write) = ends.map_err(|error| Error::of_system("making a pipe", error))?;
        Ok(Pipe { read, write })
    }
}

/// Reads exactly so many bytes.
pub fn read_all(from: impl AsFd, buffer: &mut [u8]) -> Result<(), Error> {
    let mut done = 0;
    while done < buffer.len() {
        match read(&from, &mut buffer[done..]) {
            Ok(0) => return Err(Error::new("reading a benchmark's pipe", "its end", "a partner that is still there")),
            Ok(bytes) => done += bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::of_system("reading a benchmark's pipe", error)),
        }
    }
    Ok(())
}

/// Writes all bytes.
pub fn write_all(to: impl AsFd, bytes: &[u8]) -> Result<(), Error> {
    let mut done = 0;
    while done < bytes.len() {
        match write(&to, &bytes[done..]) {
            Ok(bytes) => done += bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::of_system("writing a benchmark's pipe", error)),
        }
    }
    Ok(())
}

/// Waits until there is something to read, without reading it. Returns whether there is; `patience` may run out first.
pub fn poll_in(from: impl AsFd, patience: Option<Duration>) -> Result<bool, Error> {
    use rustix::event::{PollFd, PollFlags, poll};
    let patience = patience.and_then(|patience| patience.try_into().ok());
    loop {
        match poll(&mut [PollFd::new(&from, PollFlags::IN)], patience.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::of_system("polling a benchmark's pipe", error)),
        }
    }
}

/// Raises the limit of open files as far as the system allows.
pub fn allow_files(wanted: u64) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        let expected = format!("a limit of {wanted} (ulimit -n), or fewer groups");
        let found = format!("a limit of {}", limit.maximum.unwrap_or_default());
        return Err(Error::new("opening the benchmark's pipes", found, expected));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .map_err(|error| Error::of_system("opening the benchmark's pipes", error))
}

/// The path by which children of this process find one of its files.
pub fn address(file: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Opens a file of the parent process by its [`address`].
pub fn open(address: &str, to_write: bool) -> Result<File, Error> {
    let opened = OpenOptions::new().read(!to_write).write(to_write).open(address);
    opened.map_err(|error| Error::of_system("opening the parent's pipe", error))
}

/// Children; they are killed unless they were waited for.
#[derive(Default)]
pub struct Children(Vec<Child>);

impl Children {
    pub fn start(&mut self, starter: &Starter, words: &[String], ends: [Stdio; 2]) -> Result<(), Error> {
        let [stdin, stdout] = ends;
        let started = starter
            .command(words)
            .stdin(stdin)
            .stdout(stdout)
            .spawn()
            .map_err(|error| Error::of_system("starting a process of the benchmark", error))?;
        self.0.push(started);
        Ok(())
    }

    /// Reads one byte for each of `announcements` from children that must all stay until later.
    pub fn announce(&mut self, from: impl AsFd, announcements: usize) -> Result<(), Error> {
        let doing = "waiting for the benchmark's processes to be ready";
        for _ in 0..announcements {
            while !poll_in(&from, Some(Duration::from_millis(200)))? {
                if self.one_has_ended()? {
                    return Err(Error::new(doing, "one that has ended", "what it said itself, above"));
                }
            }
            read_all(&from, &mut [0; 1])?;
        }
        Ok(())
    }

    /// Whether one of the children has ended already.
    pub fn one_has_ended(&mut self) -> Result<bool, Error> {
        for child in &mut self.0 {
            let ended = child.try_wait();
            if ended.map_err(|error| Error::of_system("looking after the benchmark's processes", error))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for all children, in the order in which they end. Other children of this process may be alive, and may
    /// end.
    pub fn wait(mut self) -> Result<(), Error> {
        let mut failed = 0;
        let mut left: BTreeSet<u32> = self.0.iter().map(Child::id).collect();
        while !left.is_empty() {
            match wait(WaitOptions::empty()) {
                Ok(Some((child, status))) if left.remove(&child.as_raw_nonzero().get().unsigned_abs()) => {
                    failed += usize::from(status.exit_status() != Some(0));
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Error::of_system("waiting for the benchmark's children", error)),
            }
        }
        self.0.clear();
        if failed > 0 {
            let found = format!("{failed} children that failed");
            return Err(Error::new("running the benchmark's processes", found, "what they said themselves, above"));
        }
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Whatever went wrong has been reported already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_carries_bytes_and_its_end_is_an_error() {
        let pipe = Pipe::new().unwrap();
        assert!(!poll_in(&pipe.read, Some(Duration::from_millis(1))).unwrap());
        write_all(&pipe.write, b"four").unwrap();
        assert!(poll_in(&pipe.read, None).unwrap());
        let mut buffer = [0; 4];
        read_all(&pipe.read, &mut buffer).unwrap();
        assert_eq!(&buffer, b"four");
        drop(pipe.write);
        let error = read_all(&pipe.read, &mut buffer).unwrap_err();
        assert_eq!((error.found.as_str(), error.expected.as_str()), ("its end", "a partner that is still there"));
    }

    #[test]
    fn children_find_files_by_their_address() {
        let pipe = Pipe::new().unwrap();
        let mut again = open(&address(&pipe.write), true).unwrap();
        std::io::Write::write_all(&mut again, b"x").unwrap();
        let mut buffer = [0; 1];
        read_all(&pipe.read, &mut buffer).unwrap();
        assert_eq!(&buffer, b"x");
        assert!(open("/proc/self/fd/12345", true).is_err());
    }
}
