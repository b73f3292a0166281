//! Which function of machine files each logged instruction is charged to.
//!
//! What a function without a price executes is charged to whoever it was called for: to whom the instruction before its first one was
//! charged. There are no stacks in a log, so each CPU remembers that of a function's last call only. Where a function without a price is
//! called for two others by turns and sleeps in between, one of them gets what is the other's.

use super::symbols::Owner;
use std::collections::BTreeMap;

/// One that QEMU logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub cpu: u32,
    pub address: u64,
}

/// What is charged to one function.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Row {
    pub instructions: u64,
    /// How often it was called; 0 for one that is only in line.
    pub calls: u64,
    pub priced: bool,
}

/// The first symbols of ways into the kernel: what was executed before them did not call them.
const ENTRIES: &[&str] = &[
    "apic_timer_interrupt",
    "asm_",
    "call_function",
    "entry_",
    "error_entry",
    "irq_entries_start",
    "irq_work_interrupt",
    "nmi",
    "page_fault",
    "reschedule_interrupt",
    "ret_from_fork",
];

/// Whole units only: the instructions before the first beginning and after the last one are left out.
pub struct Attributed<'a> {
    /// Where a unit begins.
    begin: u64,
    owners: &'a BTreeMap<u64, Owner>,
    /// Unpriced functions stand by themselves.
    alone: bool,
    /// By CPU: whom the last instruction was charged to, and each unpriced function's last call.
    cpus: BTreeMap<u32, (Option<&'a str>, BTreeMap<&'a str, &'a str>)>,
    begun: bool,
    units: u64,
    whole: BTreeMap<&'a str, Row>,
    /// Of the unit that has begun.
    current: BTreeMap<&'a str, Row>,
}

impl<'a> Attributed<'a> {
    pub fn new(begin: u64, owners: &'a BTreeMap<u64, Owner>, alone: bool) -> Attributed<'a> {
        let (cpus, whole, current) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Attributed { begin, owners, alone, cpus, begun: false, units: 0, whole, current }
    }

    pub fn units(&self) -> u64 {
        self.units
    }

    pub fn instructions(&self) -> u64 {
        self.whole.values().map(|row| row.instructions).sum()
    }

    pub fn rows(&self) -> impl Iterator<Item = (&'a str, Row)> {
        self.whole.iter().map(|(name, row)| (*name, *row))
    }

    pub fn add(&mut self, instruction: Instruction) {
        if instruction.address == self.begin {
            self.units += u64::from(self.begun);
            self.begun = true;
            for (name, row) in std::mem::take(&mut self.current) {
                let sum = self.whole.entry(name).or_default();
                sum.instructions += row.instructions;
                sum.calls += row.calls;
                sum.priced |= row.priced;
            }
        }
        let Some(owner) = self.owners.get(&instruction.address) else { return };
        let charged = self.charged(instruction.cpu, owner);
        if self.begun {
            let row = self.current.entry(charged).or_default();
            row.instructions += 1;
            row.calls += u64::from(owner.begins && charged == owner.name);
            row.priced |= owner.priced && charged == owner.name;
        }
    }

    fn charged(&mut self, cpu: u32, owner: &'a Owner) -> &'a str {
        let (last, called_for) = self.cpus.entry(cpu).or_default();
        let charged = if owner.priced || self.alone {
            &owner.name
        } else if owner.begins {
            let entry = ENTRIES.iter().any(|entry| owner.name.starts_with(entry));
            let caller = last.filter(|_| !entry).unwrap_or(&owner.name);
            called_for.insert(&owner.name, caller);
            caller
        } else {
            called_for.get(owner.name.as_str()).copied().unwrap_or(&owner.name)
        };
        *last = Some(charged);
        charged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of four instructions each: a priced one, two without a price, another priced one, and an interrupt's entry.
    fn owners() -> BTreeMap<u64, Owner> {
        let functions =
            [("update_se", true), ("list_add", false), ("lock", false), ("__schedule", true), ("asm_timer", false)];
        let of = |(index, (name, priced)): (usize, (&str, bool))| {
            let begin = 0x1000 * (index as u64 + 1);
            let owner = move |at: u64| Owner { name: name.to_string(), priced, begins: at == 0 };
            (0..4).map(move |at| (begin + at, owner(at))).collect::<Vec<_>>()
        };
        functions.into_iter().enumerate().flat_map(of).collect()
    }

    fn attributed(alone: bool, of: &[(u32, u64)]) -> BTreeMap<String, (u64, u64)> {
        let owners = owners();
        let mut attributed = Attributed::new(0x1000, &owners, alone);
        of.iter().for_each(|&(cpu, address)| attributed.add(Instruction { cpu, address }));
        attributed.rows().map(|(name, row)| (name.to_string(), (row.instructions, row.calls))).collect()
    }

    fn expected(rows: &[(&str, u64, u64)]) -> BTreeMap<String, (u64, u64)> {
        rows.iter().map(|&(name, instructions, calls)| (name.to_string(), (instructions, calls))).collect()
    }

    #[test]
    fn whole_units_count_and_nothing_else() {
        let log = [(0, 0x1002), (0, 0x1000), (0, 0x1001), (0, 0x1000), (0, 0x1002), (0, 0x1000), (0, 0x1001)];
        assert_eq!(attributed(false, &log), expected(&[("update_se", 4, 2)]));
        assert_eq!(attributed(false, &log[..2]), expected(&[]));
    }

    #[test]
    fn what_has_no_price_is_its_callers_and_that_ones_callers() {
        let log = [
            // update_se calls list_add, which calls lock; then __schedule calls lock, and update_se goes on.
            (0, 0x1000),
            (0, 0x2000),
            (0, 0x3000),
            (0, 0x3001),
            (0, 0x2001),
            (0, 0x4000),
            (0, 0x3000),
            (0, 0x4001),
            (0, 0x1001),
            (0, 0x1000),
        ];
        assert_eq!(attributed(false, &log), expected(&[("update_se", 6, 1), ("__schedule", 3, 1)]));
        let alone = [("update_se", 2, 1), ("list_add", 2, 1), ("lock", 3, 2), ("__schedule", 2, 1)];
        assert_eq!(attributed(true, &log), expected(&alone));
    }

    #[test]
    fn an_interrupt_is_not_what_it_interrupts() {
        let log = [(0, 0x1000), (0, 0x5000), (0, 0x5001), (0, 0x1001), (0, 0x1000)];
        assert_eq!(attributed(false, &log), expected(&[("update_se", 2, 1), ("asm_timer", 2, 1)]));
    }

    #[test]
    fn each_cpu_has_its_own_callers() {
        let log = [(0, 0x1000), (1, 0x4000), (0, 0x3000), (1, 0x3000), (0, 0x3001), (1, 0x3001), (0, 0x1000)];
        assert_eq!(attributed(false, &log), expected(&[("update_se", 3, 1), ("__schedule", 3, 1)]));
    }
}
