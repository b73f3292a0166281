//! dbench's load files: what a client does, operation after operation.
//!
//! The files themselves are not part of this project. What is known of them: the kinds of operation and how often each
//! occurs, and the bytes read and written. For the shortened file it is also known where its fsyncs are: the sizes of
//! the writes they flush, and that most come in pairs that write the same block twice, a few operations apart. The full
//! file's fsyncs are assumed to have the same proportions. The order of everything else is drawn once; it is the same
//! for every client and run.

use os::fs::{FileId, FsOp};
use units::Prng;

/// Files of one client that are open or changed at a time, and how many of them are fsynced. Writes that no fsync
/// follows go to the others.
pub const FILES: u32 = 64;
const FLUSHED: u32 = 21;
/// Operations between the two fsyncs of a pair, so that their median distance is 8.
const BETWEEN: usize = 6;
/// Sizes of the writes before an fsync, and how many of 43 fsyncs have each size.
const FLUSH_SIZES: [(u32, u64); 4] = [(4_096, 30), (8_192, 4), (14_500, 5), (74_000, 4)];

/// One of the load files, by its counts of each kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadFile {
    reads: u64,
    writes: u64,
    /// Fsyncs; each flushes a write of its own.
    pub flushes: u64,
    /// Opens of files that do not exist yet, and of files that do.
    creates: u64,
    opens: u64,
    /// Opens and queries that fail.
    misses: u64,
    stats: u64,
    closes: u64,
    searches: u64,
    unlinks: u64,
    statfs: u64,
    fstats: u64,
    utimes: u64,
    renames: u64,
    locks: u64,
    /// Bytes of each read, and of each write that is not flushed: all such bytes divided by the number of operations.
    read: u32,
    write: u32,
}

impl LoadFile {
    /// MMTests's file since 2016: lines 601 to 4173 of the full one, 11.41 MB read and 7.71 MB written. Of its 613
    /// opens, 163 fail, and as many create a file as files are removed; of its 584 path queries, 189 fail.
    pub const SHORTENED: LoadFile = LoadFile {
        reads: 962,
        writes: 303,
        flushes: 43,
        creates: 124,
        opens: 326,
        misses: 163 + 189,
        stats: 395,
        closes: 450,
        searches: 215,
        unlinks: 124,
        statfs: 102,
        fstats: 97,
        utimes: 50,
        renames: 26,
        locks: 4,
        read: 11_861,
        write: 27_637,
    };

    /// dbench 4's own client.txt: 1.472 GB read and 1.016 GB written. It has 79230 opens, of which 27% fail, and 71814
    /// path queries, of which 32% fail. Its two removals of whole directories find nothing, and the directory that it
    /// makes is counted as one more new name.
    pub const FULL: LoadFile = LoadFile {
        reads: 124_199,
        writes: 39_502,
        flushes: 5_553,
        creates: 16_000 + 1,
        opens: 79_230 - 21_392 - 16_000,
        misses: 21_392 + 22_980 + 2,
        stats: 71_814 - 22_980,
        closes: 58_200,
        searches: 27_765,
        unlinks: 16_000,
        statfs: 13_168,
        fstats: 12_585,
        utimes: 6_454,
        renames: 3_355,
        locks: 2 * 258,
        read: 11_852,
        write: 27_933,
    };

    /// The file's operations, in order; file numbers are below [`FILES`].
    pub fn operations(&self) -> Vec<FsOp> {
        let others = self.others();
        let mut order = Prng::stream(0, "dbench load file", 1);
        let (others, sizes) = (shuffled(others, &mut order), shuffled(self.flush_sizes(), &mut order));
        // Fsyncs of the same block come in pairs, and once as three. Each group has a file of its own, as long as there
        // are such files.
        let (three, rest_of_sizes) = sizes.split_at(3);
        let groups: Vec<&[u32]> = std::iter::once(three).chain(rest_of_sizes.chunks(2)).collect();
        let gap = others.len() / groups.len();
        let mut rest = others.into_iter();
        let mut load = Vec::new();
        for (group, number) in groups.into_iter().zip(0..) {
            let file = FileId(number % FLUSHED);
            for (at, &bytes) in group.iter().enumerate() {
                load.push(FsOp::Write { file, bytes, fresh: at == 0 });
                load.push(FsOp::Fsync(file));
                let last = at + 1 == group.len();
                load.extend(rest.by_ref().take(if last { gap - BETWEEN * at } else { BETWEEN }));
            }
        }
        load.extend(rest);
        load
    }

    /// All operations but fsyncs and their writes, one kind after the other.
    fn others(&self) -> Vec<FsOp> {
        // The stream depends on no run's seed: the file is the same for all.
        let mut chance = Prng::stream(0, "dbench load file", 0);
        let mut others = Vec::new();
        let mut many = |count: u64, op: &dyn Fn(FileId) -> FsOp| {
            others.extend((0..count).map(|_| op(FileId(chance.below(u64::from(FILES)) as u32))));
        };
        let (read, write) = (self.read, self.write);
        many(self.reads, &|_| FsOp::Read { bytes: read });
        many(self.creates, &|file| FsOp::Open { file, create: true });
        many(self.opens, &|file| FsOp::Open { file, create: false });
        many(self.misses, &|_| FsOp::Miss);
        many(self.stats, &|_| FsOp::Stat);
        many(self.closes, &|_| FsOp::Close);
        let unflushed = |file: FileId| FileId(FLUSHED + file.0 % (FILES - FLUSHED));
        many(self.writes - self.flushes, &|file| FsOp::Write { file: unflushed(file), bytes: write, fresh: true });
        many(self.searches, &|_| FsOp::Readdir);
        many(self.unlinks, &FsOp::Unlink);
        many(self.statfs, &|_| FsOp::Statfs);
        many(self.fstats, &|_| FsOp::Fstat);
        many(self.utimes, &FsOp::Utimes);
        many(self.renames, &FsOp::Rename);
        many(self.locks, &|_| FsOp::Lock);
        others
    }

    /// The sizes of the writes before fsyncs, each as often as its share says.
    fn flush_sizes(&self) -> Vec<u32> {
        let parts: u64 = FLUSH_SIZES.iter().map(|size| size.1).sum();
        let mut sizes = Vec::new();
        let mut shares = 0;
        for (bytes, share) in FLUSH_SIZES {
            shares += share;
            // Rounding one size up rounds the next down.
            sizes.resize((self.flushes * shares / parts) as usize, bytes);
        }
        sizes
    }
}

/// A Fisher-Yates shuffle.
fn shuffled<T>(mut items: Vec<T>, chance: &mut Prng) -> Vec<T> {
    for last in (1..items.len()).rev() {
        items.swap(last, chance.below(last as u64 + 1) as usize);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that a file reads, and writes.
    fn bytes(load: &[FsOp]) -> (u64, u64) {
        load.iter().fold((0, 0), |(read, written), op| match *op {
            FsOp::Read { bytes } => (read + u64::from(bytes), written),
            FsOp::Write { bytes, .. } => (read, written + u64::from(bytes)),
            _ => (read, written),
        })
    }

    /// What was published of each file: its lines, fsyncs, and bytes read and written.
    #[test]
    fn load_files_are_as_long_and_as_heavy_as_the_published_ones() {
        for (file, lines, flushes, read, written, slack) in [
            (LoadFile::SHORTENED, 3_573, 43, 11_410_000, 7_710_000, 1_000),
            (LoadFile::FULL, 458_344, 5_553, 1_472_000_000, 1_016_000_000, 100_000),
        ] {
            let load = file.operations();
            assert_eq!(load.len(), lines);
            let flushed: Vec<usize> = (0..load.len()).filter(|&at| matches!(load[at], FsOp::Fsync(_))).collect();
            assert_eq!(flushed.len(), flushes);
            let (reads, writes) = bytes(&load);
            assert!(reads.abs_diff(read) < slack && writes.abs_diff(written) < slack, "{reads} and {writes} bytes");
            let mut gaps: Vec<usize> = flushed.windows(2).map(|two| two[1] - two[0]).collect();
            gaps.sort_unstable();
            assert_eq!(gaps[gaps.len() / 2], 8);
        }
    }

    /// Both files are cuts of one load, so the shares of their kinds agree within a percentage point.
    #[test]
    fn the_shortened_file_has_the_shares_of_the_full_one() {
        let share = |file: LoadFile, kind: fn(&FsOp) -> bool| {
            let load = file.operations();
            load.iter().filter(|op| kind(op)).count() * 1_000 / load.len()
        };
        for kind in [
            |op: &FsOp| matches!(op, FsOp::Read { .. }),
            |op: &FsOp| matches!(op, FsOp::Write { .. }),
            |op: &FsOp| matches!(op, FsOp::Open { .. }),
            |op: &FsOp| matches!(op, FsOp::Miss),
            |op: &FsOp| matches!(op, FsOp::Close),
            |op: &FsOp| matches!(op, FsOp::Fsync(_)),
        ] {
            let (short, full) = (share(LoadFile::SHORTENED, kind), share(LoadFile::FULL, kind));
            assert!(short.abs_diff(full) <= 10, "{short} and {full} in a thousand");
        }
    }
}
