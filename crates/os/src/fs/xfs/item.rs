//! What transactions of XFS change and reserve (libxfs/xfs_trans_resv.c, xfs_inode_item.c, xfs_buf_item.c).
//!
//! Every eight files of a group have a directory of their own; inodes are in clusters of 32. The trees of an allocation
//! group count with the header whose lock protects them.

use super::super::groups::{AG_COUNT, Header};
use super::super::{BLOCK, FileId};

/// Files per directory (guess: dbench's tree has some ten directories for each client).
const FILES_OF_DIRECTORY: u32 = 8;
/// Inodes per cluster, each of 512 bytes; they are written together (xfs_mount.c: m_inode_cluster_size of format 5).
const INODES_OF_CLUSTER: u32 = 32;
const INODE: u64 = 512;
const SECTOR: u64 = 512;

/// A unit that is logged, and written back by itself or with its cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::fs) enum Item {
    /// The inode of a file, by the file's number.
    Inode(u32),
    /// The blocks of a directory.
    Directory(u32),
    /// The header of a group with its trees: of inodes, or of free blocks.
    Header(u32, Header),
}

/// A buffer that is written back as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::fs) enum Buffer {
    Cluster(u32),
    Directory(u32),
    Header(u32, Header),
}

/// A file's allocation group; its directory is in the same group.
pub(in crate::fs) fn group(file: FileId) -> u32 {
    file.0 % AG_COUNT
}

/// The number of a file's batch: `size` files of one group.
fn batch(file: u32, size: u32) -> u32 {
    file / (AG_COUNT * size) * AG_COUNT + file % AG_COUNT
}

/// The files whose inodes are in a cluster.
pub(in crate::fs) fn files_of_cluster(cluster: u32) -> impl Iterator<Item = u32> {
    let first = cluster / AG_COUNT * AG_COUNT * INODES_OF_CLUSTER + cluster % AG_COUNT;
    (0..INODES_OF_CLUSTER).map(move |inode| first + inode * AG_COUNT)
}

impl Item {
    pub fn directory_of(file: FileId) -> Item {
        Item::Directory(batch(file.0, FILES_OF_DIRECTORY))
    }

    pub fn buffer(self) -> Buffer {
        match self {
            Item::Inode(file) => Buffer::Cluster(batch(file, INODES_OF_CLUSTER)),
            Item::Directory(directory) => Buffer::Directory(directory),
            Item::Header(group, header) => Buffer::Header(group, header),
        }
    }

    /// Bytes in the log for the item's first change in a checkpoint, for each further change, and at most. An inode
    /// consists of its format, core and a short list of extents (56, 176 and 16 bytes, each behind 12). Of blocks the
    /// touched pieces of 128 bytes are logged, behind some 50 bytes (guess: five pieces of a directory's blocks, two of
    /// each header and tree).
    fn bytes(self) -> (u64, u64, u64) {
        match self {
            Item::Inode(_) => (284, 0, 284),
            Item::Directory(_) => (690, 256, BLOCK + 50),
            Item::Header(..) => (920, 128, 3 * (BLOCK + 50)),
        }
    }

    /// How many bytes one more change takes in the log, if a checkpoint already has `logged` bytes of the item.
    pub fn growth(self, logged: u64) -> u64 {
        let (first, more, most) = self.bytes();
        if logged == 0 { first } else { more.min(most - logged) }
    }
}

impl Buffer {
    /// Its bytes on the disk.
    pub fn bytes(self) -> u64 {
        match self {
            Buffer::Cluster(_) => u64::from(INODES_OF_CLUSTER) * INODE,
            Buffer::Directory(_) => BLOCK,
            Buffer::Header(..) => 3 * BLOCK,
        }
    }
}

/// The state of an item.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fs) struct State {
    /// Its bytes in the open checkpoint.
    pub logged: u64,
    /// Checkpoints that hold it and are not on the disk yet, including the open one.
    pub pins: u32,
    /// The begin of the checkpoint that holds its last change, while that is on the disk and the item itself is not in
    /// its final place.
    pub lsn: Option<u64>,
    /// The value of `lsn` when its write-back began.
    pub flushing: Option<u64>,
}

/// All items.
#[derive(Debug, Default)]
pub(in crate::fs) struct Items {
    inodes: Vec<State>,
    directories: Vec<State>,
    headers: Vec<State>,
}

impl Items {
    pub fn get(&mut self, item: Item) -> &mut State {
        let (states, index) = match item {
            Item::Inode(file) => (&mut self.inodes, file as usize),
            Item::Directory(directory) => (&mut self.directories, directory as usize),
            Item::Header(group, header) => (&mut self.headers, (2 * group + header as u32) as usize),
        };
        if index >= states.len() {
            states.resize(index + 1, State::default());
        }
        &mut states[index]
    }
}

/// The kinds of call that reserve log space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fs) enum Transaction {
    Create,
    Remove,
    /// Frees the blocks of a file without a name, then its inode.
    Itruncate,
    Ifree,
    Rename,
    /// Allocates blocks for data that are to be written.
    Write,
    /// Times that a task has set.
    Ichange,
    /// Times that have changed.
    Fsyncts,
}

/// xfs_trans_resv.c: xfs_calc_buf_res(): `count` buffers of `size` bytes.
const fn xfs_calc_buf_res(count: u64, size: u64) -> u64 {
    count * (size + 128)
}

/// xfs_trans_resv.c: xfs_calc_inode_res(): format, core, and two tree roots.
const fn xfs_calc_inode_res(count: u64) -> u64 {
    count * (4 * 12 + 56 + INODE + 2 * 72)
}

/// xfs_trans_resv.c: xfs_allocfree_log_count(): the blocks of the free-space trees for this many extents, with three
/// levels; without the trees that came after v4.7, which mkfs does not enable.
const fn xfs_allocfree_log_count(extents: u64) -> u64 {
    extents * 2 * (2 * 3 - 1)
}

/// XFS_DIROP_LOG_COUNT: the blocks of a directory's tree and of its block map.
const DIRECTORY_BLOCKS: u64 = 7 + 7 * 4 + 1;
/// Levels of the inode tree in a group this small, and of a file's block map.
const INODE_LEVELS: u64 = 2;
const MAP_LEVELS: u64 = 5;
/// Blocks of 64 inodes, which are allocated and freed together.
const INODE_CHUNK: u64 = 64 * INODE / BLOCK;
const CLUSTER: u64 = INODES_OF_CLUSTER as u64 * INODE;

const fn larger(one: u64, other: u64) -> u64 {
    if one > other { one } else { other }
}

/// xfs_trans_resv.c: xfs_calc_finobt_res()
const fn xfs_calc_finobt_res(alloc: bool, modify: bool) -> u64 {
    let alloc = if alloc { xfs_calc_buf_res(xfs_allocfree_log_count(1), BLOCK) } else { 0 };
    xfs_calc_buf_res(INODE_LEVELS, BLOCK) + alloc + if modify { BLOCK } else { 0 }
}

/// xfs_log.c: xfs_log_calc_unit_res(): includes the headers of the log and of the transaction.
const fn xfs_log_calc_unit_res(bytes: u64) -> u64 {
    let bytes = bytes + 12 + 16 + 12;
    let headers = bytes.div_ceil(super::ICLOG_BYTES);
    bytes + headers * (12 + super::HEADER) + super::HEADER + 2 * 512
}

impl Transaction {
    /// xfs_trans_resv.c: xfs_trans_resv_calc(): bytes in the log, for all the times that the transaction may roll over
    /// on its ticket.
    pub const fn reservation(self) -> u64 {
        let removes_from_list = xfs_calc_buf_res(1, SECTOR) + larger(BLOCK, CLUSTER);
        let (bytes, count) = match self {
            Transaction::Create => {
                let modify = xfs_calc_inode_res(2)
                    + xfs_calc_buf_res(1, SECTOR)
                    + BLOCK
                    + xfs_calc_buf_res(DIRECTORY_BLOCKS, BLOCK);
                let alloc = xfs_calc_buf_res(2, SECTOR)
                    + SECTOR
                    + xfs_calc_buf_res(INODE_LEVELS, BLOCK)
                    + xfs_calc_buf_res(xfs_allocfree_log_count(1), BLOCK);
                let modify = modify + xfs_calc_finobt_res(true, true);
                (larger(alloc + xfs_calc_finobt_res(false, false), modify), 2)
            }
            Transaction::Remove => {
                let adds_to_list = xfs_calc_buf_res(1, SECTOR) + xfs_calc_inode_res(1);
                let blocks = xfs_calc_buf_res(4, SECTOR) + xfs_calc_buf_res(xfs_allocfree_log_count(2), BLOCK);
                (adds_to_list + larger(xfs_calc_inode_res(1) + xfs_calc_buf_res(DIRECTORY_BLOCKS, BLOCK), blocks), 2)
            }
            Transaction::Itruncate => {
                let frees = xfs_calc_buf_res(9, SECTOR)
                    + xfs_calc_buf_res(xfs_allocfree_log_count(4), BLOCK)
                    + xfs_calc_buf_res(5, 0);
                let chunk = xfs_calc_buf_res(xfs_allocfree_log_count(1), BLOCK)
                    + xfs_calc_buf_res(2 + INODE_CHUNK + INODE_LEVELS, 0);
                (larger(xfs_calc_inode_res(1) + xfs_calc_buf_res(MAP_LEVELS + 1, BLOCK), frees + chunk), 2)
            }
            Transaction::Ifree => {
                let inode = xfs_calc_inode_res(1)
                    + xfs_calc_buf_res(1, SECTOR)
                    + xfs_calc_buf_res(1, BLOCK)
                    + removes_from_list
                    + xfs_calc_buf_res(1, 0);
                let trees = xfs_calc_buf_res(2 + INODE_CHUNK + INODE_LEVELS, 0)
                    + xfs_calc_buf_res(xfs_allocfree_log_count(1), BLOCK);
                (inode + trees + xfs_calc_finobt_res(false, true), 2)
            }
            Transaction::Rename => {
                let blocks = xfs_calc_buf_res(7, SECTOR) + xfs_calc_buf_res(xfs_allocfree_log_count(3), BLOCK);
                (larger(xfs_calc_inode_res(4) + xfs_calc_buf_res(2 * DIRECTORY_BLOCKS, BLOCK), blocks), 2)
            }
            Transaction::Write => {
                let map = xfs_calc_inode_res(1)
                    + xfs_calc_buf_res(MAP_LEVELS, BLOCK)
                    + xfs_calc_buf_res(3, SECTOR)
                    + xfs_calc_buf_res(xfs_allocfree_log_count(2), BLOCK);
                (larger(map, xfs_calc_buf_res(5, SECTOR) + xfs_calc_buf_res(xfs_allocfree_log_count(2), BLOCK)), 2)
            }
            Transaction::Ichange => (xfs_calc_inode_res(1) + xfs_calc_buf_res(1, SECTOR), 1),
            Transaction::Fsyncts => (xfs_calc_inode_res(1), 1),
        };
        xfs_log_calc_unit_res(bytes) * count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_together_is_written_together() {
        let files =
            |buffer: Buffer| (0..512).filter(|&file| Item::Inode(file).buffer() == buffer).collect::<Vec<u32>>();
        let cluster = files(Item::Inode(5).buffer());
        assert_eq!(cluster.len(), 32);
        let Buffer::Cluster(number) = Item::Inode(133).buffer() else { unreachable!("an inode's buffer") };
        assert_eq!(files_of_cluster(number).collect::<Vec<u32>>(), files(Buffer::Cluster(number)));
        assert!(cluster.iter().all(|&file| group(FileId(file)) == 1), "{cluster:?}");
        let directory = Item::directory_of(FileId(5));
        let named = (0..512).filter(|&file| Item::directory_of(FileId(file)) == directory);
        assert_eq!(named.collect::<Vec<u32>>(), [1, 5, 9, 13, 17, 21, 25, 29]);
    }

    #[test]
    fn a_checkpoint_holds_an_item_once() {
        assert_eq!(Item::Inode(1).growth(0), 284);
        assert_eq!(Item::Inode(1).growth(284), 0);
        let mut logged = 0;
        for _ in 0..100 {
            logged += Item::Directory(1).growth(logged);
        }
        assert_eq!(logged, BLOCK + 50, "no more than the whole of it");
    }

    /// By hand, for blocks of 4 KiB, four groups of 512 MB, and the layout of mkfs.xfs in 2018.
    #[test]
    fn reservations_are_those_of_the_formulas() {
        let bytes = |transaction: Transaction| transaction.reservation();
        assert_eq!(bytes(Transaction::Fsyncts), 760 + 40 + 524 + 512 + 1024);
        assert_eq!(bytes(Transaction::Ichange), 760 + 640 + 40 + 524 + 512 + 1024);
        // Two inodes, a sector, a block, 36 blocks of the directory, and 2, 10 and one blocks of the free-inode tree: 7
        // headers.
        let create = 1_520 + 640 + 4_096 + 36 * 4_224 + 12 * 4_224 + 4_096;
        assert_eq!(bytes(Transaction::Create), 2 * (create + 40 + 7 * 524 + 512 + 1024));
        let remove = 640 + 760 + 760 + 36 * 4_224;
        assert_eq!(bytes(Transaction::Remove), 2 * (remove + 40 + 5 * 524 + 512 + 1024));
        let rename = 4 * 760 + 72 * 4_224;
        assert_eq!(bytes(Transaction::Rename), 2 * (rename + 40 + 10 * 524 + 512 + 1024));
        // At most 24 of them at a time, in a log of 10 MiB.
        assert_eq!(super::super::LOG_BYTES / bytes(Transaction::Create), 24);
    }
}
