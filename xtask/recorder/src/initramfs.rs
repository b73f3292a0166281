//! The guest's file system: an archive that the kernel unpacks into memory (Documentation/driver-api/early-userspace/buffer-format.rst).

/// The folders that the player mounts file systems on.
const FOLDERS: [&str; 3] = ["dev", "proc", "sys"];

/// Modes of a folder and of a program, stat(2).
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive with the player as /init and its script as /program. The same input gives the same bytes.
pub fn of(player: &[u8], program: &str) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut inode = 0;
    let mut add = |name: &str, mode: u32, bytes: &[u8]| {
        inode += 1;
        entry(&mut archive, name, inode, mode, bytes);
    };
    FOLDERS.iter().for_each(|folder| add(folder, FOLDER, &[]));
    add("init", PROGRAM, player);
    add("program", PROGRAM, program.as_bytes());
    add("TRAILER!!!", 0, &[]);
    archive
}

/// One entry of the "newc" format: numbers of eight hexadecimal digits; name and content end at multiples of four bytes.
fn entry(archive: &mut Vec<u8>, name: &str, inode: u32, mode: u32, bytes: &[u8]) {
    let (size, name_size) = (bytes.len() as u32, name.len() as u32 + 1);
    // inode, mode, user, group, links, time, size, device and its number twice, name, checksum.
    let fields = [inode, mode, 0, 0, 1, 1, size, 0, 0, 0, 0, name_size, 0];
    archive.extend(b"070701");
    fields.iter().for_each(|field| archive.extend(format!("{field:08x}").bytes()));
    archive.extend(name.bytes().chain([0]));
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_end_with_a_trailer() {
        let archive = of(b"ELF", "settle 5\n");
        let text = String::from_utf8_lossy(&archive);
        assert_eq!(archive.len() % 4, 0);
        assert_eq!(text.matches("070701").count(), FOLDERS.len() + 3);
        let init = text.find("init\0").unwrap();
        assert_eq!(&archive[(init + 5).next_multiple_of(4)..][..3], b"ELF");
        assert!(text.contains("program\0") && text.ends_with("TRAILER!!!\0\0\0\0"));
        assert!(text.contains(&format!("{PROGRAM:08x}")));
    }
}
