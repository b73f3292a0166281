//! Writing: to stdout, which may close; to stderr; and to files, whole or not at all.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Prints results.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::Closed),
        Err(error) => Err(Failure::Mistake(format!("stdout: {error}"))),
    }
}

/// Says something that is no result. Whether anybody hears it does not matter.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A file that appears under its name only when it is whole.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    unfinished: PathBuf,
    file: Option<File>,
}

impl NewFile {
    pub fn create(path: &Path) -> io::Result<NewFile> {
        if path.is_dir() {
            return Err(io::Error::new(ErrorKind::IsADirectory, "a folder of that name is in the way"));
        }
        let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "no file name"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let unfinished = path.with_file_name(hidden);
        let file = File::create(&unfinished)?;
        Ok(NewFile { path: path.to_path_buf(), unfinished, file: Some(file) })
    }

    /// Gives the file its name.
    pub fn keep(mut self) -> io::Result<()> {
        self.file = None;
        fs::rename(&self.unfinished, &self.path)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().expect("open until it is kept").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().expect("open until it is kept").flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `keep` there is nothing of that name; otherwise what is there is of no use.
        if self.file.take().is_some() || self.unfinished.exists() {
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

/// Removes what programs that were killed have left half written in a folder and those below it.
pub fn sweep(folder: &Path) {
    // Where nobody says which programs run, none is known to be gone.
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&path);
        } else if unfinished_by(&path).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The process that writes, or wrote, an unfinished file of [`NewFile`].
fn unfinished_by(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix('.')?;
    name.rsplit_once('.')?.1.parse().ok()
}

/// Writes a whole file.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.keep()
}
