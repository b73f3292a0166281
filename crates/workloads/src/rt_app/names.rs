//! From names to dense ids: the first mention of a name creates it, as in rt-app.

use super::MOST_TASKGROUPS;
use super::description::{
    Barrier, BarrierId, Buffer, BufferId, ConditionId, MemAccess, MutexId, Resources, SemaphoreId,
};
use super::description::{TaskId, TaskgroupId, Timer, TimerMode};
use super::fault::{Fault, Position};
use std::collections::BTreeMap;

/// Values in the order of their first mention, found by key.
pub(super) struct Table<K, T> {
    index: BTreeMap<K, u32>,
    pub values: Vec<T>,
}

impl<K: Ord, T> Default for Table<K, T> {
    fn default() -> Table<K, T> {
        Table { index: BTreeMap::new(), values: Vec::new() }
    }
}

impl<K: Ord, T> Table<K, T> {
    pub fn id(&mut self, key: K, make: impl FnOnce() -> T) -> u32 {
        *self.index.entry(key).or_insert_with(|| {
            self.values.push(make());
            self.values.len() as u32 - 1
        })
    }
}

impl Table<String, String> {
    pub fn named(&mut self, name: &str) -> u32 {
        self.id(name.into(), || name.into())
    }
}

impl Table<String, TimerUse> {
    pub fn timer(&mut self, name: &str) -> u32 {
        let timer = Timer { name: name.into(), mode: TimerMode::Relative };
        self.id(name.into(), || TimerUse { timer, relative_at: None, absolute_at: None })
    }

    pub fn into_timers(self) -> Vec<Timer> {
        self.values.into_iter().map(|used| used.timer).collect()
    }
}

/// A timer, and where a use first gave its mode.
pub(super) struct TimerUse {
    pub timer: Timer,
    pub relative_at: Option<Position>,
    pub absolute_at: Option<Position>,
}

impl TimerUse {
    /// rt-app keeps the mode with the timer: one use that says absolute makes it absolute for all. `Some` is the
    /// position of another use that says the opposite.
    pub fn say(&mut self, mode: TimerMode, position: Position) -> Option<Position> {
        match mode {
            TimerMode::Relative => {
                self.relative_at.get_or_insert(position);
                self.absolute_at
            }
            TimerMode::Absolute => {
                self.timer.mode = TimerMode::Absolute;
                self.absolute_at.get_or_insert(position);
                self.relative_at
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BufferKey {
    /// By `ref` and kind of access, since rt-app keeps one for each kind.
    Shared(String, u8),
    /// By task, kind of access and shape: size, stride, order.
    Own(u32, u8, u32, u32, bool),
}

#[derive(Default)]
pub(super) struct Names {
    pub mutexes: Table<String, String>,
    pub conditions: Table<String, String>,
    pub semaphores: Table<String, String>,
    pub barriers: Table<String, Barrier>,
    pub timers: Table<String, TimerUse>,
    pub taskgroups: Table<String, String>,
    buffers: Table<BufferKey, (Buffer, Position)>,
}

impl Names {
    pub fn mutex(&mut self, name: &str) -> MutexId {
        MutexId(self.mutexes.named(name))
    }

    pub fn condition(&mut self, name: &str) -> ConditionId {
        ConditionId(self.conditions.named(name))
    }

    pub fn semaphore(&mut self, name: &str) -> SemaphoreId {
        SemaphoreId(self.semaphores.named(name))
    }

    /// One more use of a barrier, by a task with this many instances.
    pub fn barrier(&mut self, name: &str, instances: u32) -> BarrierId {
        let id = self.barriers.id(name.into(), || Barrier { name: name.into(), users: 0 });
        let users = &mut self.barriers.values[id as usize].users;
        *users = users.saturating_add(instances);
        BarrierId(id)
    }

    pub fn taskgroup(&mut self, path: &str, position: Position) -> Result<TaskgroupId, Fault> {
        let id = self.taskgroups.named(path);
        if id as usize >= MOST_TASKGROUPS {
            let found = format!("this is task group number {}", id + 1);
            return Err(Fault::new(
                position,
                found,
                format!("rt-app supports at most {MOST_TASKGROUPS} different ones"),
            ));
        }
        Ok(TaskgroupId(id))
    }

    /// The buffer of a `memrun`; all that share it must agree on its shape.
    pub fn buffer(
        &mut self,
        task: TaskId,
        access: MemAccess,
        buffer: Buffer,
        position: Position,
    ) -> Result<BufferId, Fault> {
        let stride = buffer.chain.map_or(0, |chain| chain.stride_bytes);
        let random = buffer.chain.is_some_and(|chain| chain.random);
        let key = match &buffer.shared_as {
            Some(name) => BufferKey::Shared(name.clone(), access as u8),
            None => BufferKey::Own(task.0, access as u8, buffer.bytes, stride, random),
        };
        let id = self.buffers.id(key, || (buffer.clone(), position));
        let (first, at) = &self.buffers.values[id as usize];
        if *first != buffer {
            let found = "this \"memrun\" shares its buffer with another of a different size, stride or pattern";
            return Err(Fault::new(position, found, format!("give both the same values; the other is at {at}")));
        }
        Ok(BufferId(id))
    }

    pub fn into_resources(self) -> Resources {
        Resources {
            mutexes: self.mutexes.values,
            conditions: self.conditions.values,
            barriers: self.barriers.values,
            semaphores: self.semaphores.values,
            timers: self.timers.into_timers(),
            buffers: self.buffers.values.into_iter().map(|(buffer, _)| buffer).collect(),
        }
    }
}
