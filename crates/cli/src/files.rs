//! The computer's files, through the interface that the lab expects.

use lab::machines::Files;
use lab::mistake::{Location, Unreadable};
use std::fs;
use std::io::Read;

/// Any experiment, machine or record that makes sense is smaller.
const LARGEST_FILE: u64 = 256 << 20;

pub struct Disk;

impl Files for Disk {
    fn text(&self, path: &str) -> Result<String, Unreadable> {
        String::from_utf8(self.bytes(path)?).map_err(|error| {
            let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            let at = Location::in_text(path, &before, before.len());
            Unreadable { why: "bytes that are no UTF-8 text".to_string(), place: at.line.zip(at.column) }
        })
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        let words = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_string(),
            std::io::ErrorKind::IsADirectory => Unreadable::FOLDER.to_string(),
            _ => error.to_string(),
        };
        let words = |error| Unreadable::from(words(error));
        // Opening a pipe without a writer would wait for ever; the pipe that a shell passes as /dev/fd/N has one.
        let kind = fs::metadata(path).map_err(words)?.file_type();
        if !kind.is_file() && !kind.is_dir() && !["/dev/fd/", "/proc/self/fd/"].iter().any(|at| path.starts_with(at)) {
            return Err("a pipe, a socket or a device".to_string().into());
        }
        let mut file = fs::File::open(path).map_err(words)?;
        let mut bytes = Vec::new();
        (&mut file).take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(words)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(format!("more than {} MiB", LARGEST_FILE >> 20).into());
        }
        Ok(bytes)
    }

    fn sysfs(&self, path: &str) -> Option<String> {
        fs::read_to_string(format!("/{path}")).ok()
    }
}
