//! Writes to stdout, which may close; to stderr; and to files, completely or not at all.

use crate::failure::Failure;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The suffix of unfinished files. Nobody else uses it, so only our own files are swept.
const PART: &str = ".fairground-part";

/// Prints results.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::Closed),
        Err(error) => Err(Failure::Mistake(format!("stdout: {error}"))),
    }
}

/// Prints a message that is not a result. It does not matter whether anybody reads it.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A file that appears under its name only once it is complete. If the name belongs to something that is not a regular
/// file (a device, a pipe), that is written to directly: replacing it with a file would take it away from everybody.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The path where it is written until then.
    unfinished: Option<PathBuf>,
    file: Option<File>,
}

impl NewFile {
    /// A file that the user has named, in the user's folder. Half-written versions of the same file that killed
    /// programs have left are removed, and nothing else.
    pub fn named(path: &Path) -> io::Result<NewFile> {
        let new = NewFile::create(path)?;
        if let (Some(name), Some(folder)) = (new.path.file_name().and_then(OsStr::to_str), folder_of(&new.path)) {
            let parts_of_it = |path: &Path| unfinished_by(path).is_some_and(|(of, _)| of == name);
            sweep_files(folder, &parts_of_it);
        }
        Ok(new)
    }

    pub fn create(path: &Path) -> io::Result<NewFile> {
        // If the name is a link, its target must change, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() => {
                return Err(io::Error::new(ErrorKind::IsADirectory, "a folder of that name is in the way"));
            }
            Ok(there) if !there.is_file() => {
                let file = File::options().write(true).open(&path)?;
                return Ok(NewFile { path, unfinished: None, file: Some(file) });
            }
            _ => {}
        }
        let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "no file name"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}{PART}", std::process::id()));
        let unfinished = path.with_file_name(hidden);
        let file = File::create(&unfinished)?;
        Ok(NewFile { path, unfinished: Some(unfinished), file: Some(file) })
    }

    /// Gives the finished file its name.
    pub fn keep(mut self) -> io::Result<()> {
        self.file = None;
        match &self.unfinished {
            Some(unfinished) => fs::rename(unfinished, &self.path),
            None => Ok(()),
        }
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
        // After `keep` there is nothing of that name; before, what is there is of no use.
        if let Some(unfinished) = &self.unfinished {
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// Removes the half-written files of killed programs from a folder, and from those of its folders that are `ours` with
/// everything below them. Everything else in the folder belongs to the user.
pub fn sweep(folder: &Path, ours: &[&str]) {
    sweep_files(folder, &|_| true);
    for name in ours {
        sweep_below(&folder.join(name));
    }
}

/// Sweeps a folder, and all folders below it.
fn sweep_below(folder: &Path) {
    for below in sweep_files(folder, &|_| true) {
        sweep_below(&below);
    }
}

/// Removes the unwanted ones among a folder's leftover files, and returns the folders in it.
fn sweep_files(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    // If the system does not list its processes, none is known to have ended.
    if !Path::new("/proc/self").exists() {
        return folders;
    }
    let is_gone = |process: u32| !Path::new(&format!("/proc/{process}")).exists();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.push(path);
        } else if wanted(&path) && unfinished_by(&path).is_some_and(|(_, process)| is_gone(process)) {
            let _ = fs::remove_file(&path);
        }
    }
    folders
}

/// The final name of an unfinished file of [`NewFile`], and the process that writes, or wrote, it.
fn unfinished_by(path: &Path) -> Option<(&str, u32)> {
    let name = path.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(PART)?;
    let (name, process) = name.rsplit_once('.')?;
    Some((name, process.parse().ok()?))
}

/// The folder of a file.
fn folder_of(path: &Path) -> Option<&Path> {
    path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// The folders on the way to `path`, itself included, that do not exist, the outermost first.
pub fn folders_to_make(path: &Path) -> Vec<PathBuf> {
    let mut made: Vec<PathBuf> = path.ancestors().take_while(|at| !at.exists()).map(Path::to_path_buf).collect();
    made.retain(|at| !at.as_os_str().is_empty());
    made.reverse();
    made
}

/// Writes a whole file, and creates the folders that it lies in.
pub fn write_file_and_folders(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    write_file(path, content)
}

/// Writes a whole file.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.keep()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, symlink};

    #[test]
    fn a_file_is_whole_or_not_there_and_a_link_stays_one() {
        let place = std::env::temp_dir().join(format!("fairground-output-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let (file, link) = (place.join("file"), place.join("link"));
        NewFile::create(&file).unwrap().write_all(b"given up").unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        write_file(&file, "one").unwrap();
        symlink(&file, &link).unwrap();
        write_file(&link, "two").unwrap();
        assert!(link.is_symlink());
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), fs::read_dir(&place).unwrap().count()), ("two", 2));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn only_our_own_unfinished_files_are_swept_and_only_where_they_are_ours() {
        let place = std::env::temp_dir().join(format!("fairground-sweep-{}", std::process::id()));
        let alive = format!("records/.b.{}.fairground-part", std::process::id());
        // No process has this number.
        let gone = [
            ".a.4194999.fairground-part",
            "records/.a.4194999.fairground-part",
            "records/0/1/.a.4194999.fairground-part",
        ];
        let stay = [
            ".backup.20260101",
            "a.4194999.fairground-part",
            "records/0/.mine.4194999",
            "records/.mine.fairground-part",
            "keep/.a.4194999.fairground-part",
            &alive,
        ];
        for file in gone.iter().chain(&stay) {
            write_file_and_folders(&place.join(file), "x").unwrap();
        }
        sweep(&place, &["records", "logs"]);
        assert_eq!(gone.map(|file| place.join(file).exists()), [false; 3]);
        assert_eq!(stay.map(|file| place.join(file).exists()), [true; 6]);
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn what_was_left_of_a_file_goes_with_the_next_one_of_its_name() {
        let place = std::env::temp_dir().join(format!("fairground-parts-{}", std::process::id()));
        let alive = format!(".a.toml.{}.fairground-part", std::os::unix::process::parent_id());
        let [gone, other, backup] =
            [".a.toml.4194999.fairground-part", ".b.toml.4194999.fairground-part", ".a.toml.4194999"];
        for file in [gone, other, backup, &alive, "a.toml"] {
            write_file_and_folders(&place.join(file), "x").unwrap();
        }
        NewFile::named(&place.join("a.toml")).unwrap().keep().unwrap();
        let there = [gone, other, backup, &alive, "a.toml"].map(|file| place.join(file).exists());
        assert_eq!(there, [false, true, true, true, true]);
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_pipe_is_written_to_and_stays_one() {
        let place = std::env::temp_dir().join(format!("fairground-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&place).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let place = place.clone();
            move || fs::read_to_string(place).unwrap()
        });
        write_file(&place, "a trace").unwrap();
        assert_eq!(reader.join().unwrap(), "a trace");
        assert!(fs::metadata(&place).unwrap().file_type().is_fifo());
        fs::remove_file(&place).unwrap();
    }
}
