//! list.h: doubly linked lists whose links live in the objects. Their order is behaviour: load balancing walks them.

use crate::sched::{Arena, CfsRq, CfsRqId, Link, Links, ListHead, TaskId, TaskStruct};

/// An object that is on at most one list of each kind.
pub(crate) trait Linked: Default {
    type Id: From<u32> + Into<u32> + Copy;
    fn links(&self) -> &Links;
    fn links_mut(&mut self) -> &mut Links;
}

/// `rq->cfs_tasks`.
impl Linked for TaskStruct {
    type Id = TaskId;

    #[inline]
    fn links(&self) -> &Links {
        &self.group_node
    }

    #[inline]
    fn links_mut(&mut self) -> &mut Links {
        &mut self.group_node
    }
}

/// `rq->leaf_cfs_rq_list`.
impl Linked for CfsRq {
    type Id = CfsRqId;

    #[inline]
    fn links(&self) -> &Links {
        &self.leaf_cfs_rq_list
    }

    #[inline]
    fn links_mut(&mut self) -> &mut Links {
        &mut self.leaf_cfs_rq_list
    }
}

impl ListHead {
    /// list.h: list_add(). The object becomes the first.
    #[inline]
    pub(crate) fn list_add<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id) {
        self.link(arena, id, None, self.first);
    }

    /// list.h: list_add_tail(). The object becomes the last.
    #[inline]
    pub(crate) fn list_add_tail<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id) {
        self.link(arena, id, self.last, None);
    }

    /// list.h: list_add() with a member in place of the head. The object goes right behind `at`.
    #[inline]
    pub(crate) fn list_add_behind<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id, at: T::Id) {
        let next = arena[at].links().next.get();
        self.link(arena, id, Some(at.into()), next);
    }

    /// list.h: list_add_tail() with a member in place of the head. The object goes right before `at`.
    #[inline]
    pub(crate) fn list_add_before<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id, at: T::Id) {
        let prev = arena[at].links().prev.get();
        self.link(arena, id, prev, Some(at.into()));
    }

    /// list.h: list_del().
    /// Differs: stands for list_del_init() and list_del_rcu() too; a removed object is on no list.
    #[inline]
    pub(crate) fn list_del<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id) {
        let Links { prev, next } = std::mem::take(arena[id].links_mut());
        debug_assert!(prev != Link::UNLINKED, "not on a list");
        match prev.get() {
            Some(prev) => arena[T::Id::from(prev)].links_mut().next = next,
            None => self.first = next.get(),
        }
        match next.get() {
            Some(next) => arena[T::Id::from(next)].links_mut().prev = prev,
            None => self.last = prev.get(),
        }
    }

    /// list.h: list_move(). The object becomes the first again.
    #[inline]
    pub(crate) fn list_move<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id) {
        if self.first != Some(id.into()) {
            self.list_del(arena, id);
            self.list_add(arena, id);
        }
    }

    #[inline]
    fn link<T: Linked>(&mut self, arena: &mut Arena<T::Id, T>, id: T::Id, prev: Option<u32>, next: Option<u32>) {
        debug_assert!(arena[id].links().prev == Link::UNLINKED, "on a list already");
        let link = |to: Option<u32>| to.map_or(Link::NONE, Link::to);
        *arena[id].links_mut() = Links { prev: link(prev), next: link(next) };
        match prev {
            Some(prev) => arena[T::Id::from(prev)].links_mut().next = Link::to(id),
            None => self.first = Some(id.into()),
        }
        match next {
            Some(next) => arena[T::Id::from(next)].links_mut().prev = Link::to(id),
            None => self.last = Some(id.into()),
        }
    }

    /// From the first to the last (list_for_each_entry()).
    #[cfg(test)]
    pub(crate) fn iter<'a, T: Linked>(&self, arena: &'a Arena<T::Id, T>) -> impl Iterator<Item = T::Id> + 'a {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let id = T::Id::from(next?);
            next = arena[id].links().next.get();
            Some(id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(head: &ListHead, arena: &Arena<TaskId, TaskStruct>) -> Vec<u32> {
        let forward: Vec<u32> = head.iter(arena).map(|t| t.0).collect();
        let mut backward = Vec::new();
        let mut at = head.last;
        while let Some(id) = at {
            backward.insert(0, id);
            at = arena[TaskId(id)].group_node.prev.get();
        }
        assert_eq!(forward, backward, "the links of both directions agree");
        forward
    }

    #[test]
    fn each_operation_leaves_the_kernels_order() {
        let mut arena = Arena::new();
        let ids: Vec<TaskId> = (0..6).map(|_| arena.insert(TaskStruct::default())).collect();
        let mut head = ListHead::default();
        assert_eq!(order(&head, &arena), []);
        head.list_add(&mut arena, ids[0]);
        head.list_add(&mut arena, ids[1]);
        head.list_add_tail(&mut arena, ids[2]);
        assert_eq!(order(&head, &arena), [1, 0, 2]);
        head.list_add_before(&mut arena, ids[3], ids[1]);
        head.list_add_before(&mut arena, ids[4], ids[2]);
        head.list_add_behind(&mut arena, ids[5], ids[2]);
        assert_eq!(order(&head, &arena), [3, 1, 0, 4, 2, 5]);
        head.list_move(&mut arena, ids[4]);
        head.list_move(&mut arena, ids[4]);
        assert_eq!(order(&head, &arena), [4, 3, 1, 0, 2, 5]);
        for id in [ids[0], ids[4], ids[5]] {
            head.list_del(&mut arena, id);
        }
        assert_eq!(order(&head, &arena), [3, 1, 2]);
        for id in [ids[1], ids[2], ids[3]] {
            head.list_del(&mut arena, id);
        }
        assert_eq!(head, ListHead::default());
    }
}
