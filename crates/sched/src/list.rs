//! The building blocks of intrusive lists; `fair/list.rs` has the operations.

/// The number of a task or a queue, or none, in four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link(u32);

impl Link {
    /// The end of a list, or no object.
    pub const NONE: Link = Link(u32::MAX);
    /// The link of an object that is on no list.
    pub const UNLINKED: Link = Link(u32::MAX - 1);

    /// A link to an existing object.
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
    /// list.h: list_is_singular(), for a member: whether it is alone on its list.
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
