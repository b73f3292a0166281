//! Arenas: objects of one kind in one vector, named by small numbers.

use units::Slots;

/// Objects of one kind, by id. Free slots are reused, the most recently freed first.
#[derive(Clone, Debug)]
pub struct Arena<I, T> {
    slots: Slots<T>,
    free: Vec<u32>,
    id: std::marker::PhantomData<I>,
}

impl<I: From<u32> + Into<u32>, T: Default> Arena<I, T> {
    pub fn new() -> Arena<I, T> {
        Arena { slots: Slots::new(), free: Vec::new(), id: std::marker::PhantomData }
    }

    pub fn insert(&mut self, value: T) -> I {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = value;
                I::from(slot)
            }
            None => {
                self.slots.push(value);
                I::from(self.slots.len() as u32 - 1)
            }
        }
    }

    /// Takes the object out; its id may be reused at once.
    pub fn remove(&mut self, id: I) -> T {
        let slot = id.into();
        self.free.push(slot);
        std::mem::take(&mut self.slots[slot as usize])
    }

    /// Makes room for `id`, in an arena whose ids are allocated elsewhere.
    pub fn ensure(&mut self, id: I) {
        let slot = id.into() as usize;
        self.slots.grow_with(slot + 1, T::default);
    }

    /// Resets the object of `id`.
    pub fn reset(&mut self, id: I) {
        if let Some(slot) = self.slots.get_mut(id.into() as usize) {
            *slot = T::default();
        }
    }

    /// The number of slots in use or used before: one more than the largest id so far.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slots.iter().enumerate().map(|(i, t)| (I::from(i as u32), t))
    }
}

impl<I: From<u32> + Into<u32>, T: Default> Default for Arena<I, T> {
    fn default() -> Arena<I, T> {
        Arena::new()
    }
}

impl<I: Into<u32>, T> std::ops::Index<I> for Arena<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.slots[id.into() as usize]
    }
}

impl<I: Into<u32>, T> std::ops::IndexMut<I> for Arena<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.slots[id.into() as usize]
    }
}
