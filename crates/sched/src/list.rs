//! What intrusive lists are made of; `fair/list.rs` has what is done with them.

/// The number of a task or a queue, or none, in four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link(u32);

impl Link {
    /// The end of a list, or nobody.
    pub const NONE: Link = Link(u32::MAX);
    /// Of what is on no list.
    pub const UNLINKED: Link = Link(u32::MAX - 1);

    /// To an object that is there.
    #[inline]
    pub fn to(id: impl Into<u32>) -> Link {
        Link(id.into())
    }

    #[inline]
    pub fn get(self) -> Option<u32> {
        (self.0 < Link::UNLINKED.0).then_some(self.0)
    }
}

impl Default for Link {
    fn default() -> Link {
        Link::UNLINKED
    }
}

/// list.h: the two links of an intrusive list of tasks or queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Links {
    pub prev: Link,
    pub next: Link,
}

impl Links {
    /// list.h: list_is_singular(), of a member: whether it is alone on its list.
    #[inline]
    pub fn is_singular(self) -> bool {
        self.prev == Link::NONE && self.next == Link::NONE
    }
}

/// list.h: struct list_head of such a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListHead {
    pub first: Option<u32>,
    pub last: Option<u32>,
}
