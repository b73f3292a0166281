//! Kernels as values: each is its predecessor with a diff, which reads as a changelog.

use crate::behaviour;
use crate::behaviour::Variant;
use crate::fair::balance::BalanceRules;
use crate::fair::entity::EntityRules;
use crate::fair::wake::WakeRules;
use crate::features::Features;
use crate::layout::Layout;
use crate::pelt::Pelt;
use crate::stats::Schedstats;
use crate::topology::DomainRules;

behaviour! {
    /// Who brings a run queue's clock up to date.
    pub enum ClockUpdate = "core.clock" {
        Enqueue = "enqueue", since "v2.6.23", commit "", "every enqueue and dequeue updates the clock";
        Callers = "callers", since "v4.12", commit "0a67d1ee30ef",
            "who takes the lock updates the clock once and says so (ENQUEUE_NOCLOCK)";
    }
}

/// core.c's own differences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreRules {
    pub clock: ClockUpdate,
}

/// One kernel version: every behaviour that differs between versions, its debug toggles and its memory layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    pub name: &'static str,
    pub core: CoreRules,
    pub pelt: Pelt,
    pub domains: DomainRules,
    pub entity: EntityRules,
    pub wake: WakeRules,
    pub balance: BalanceRules,
    pub schedstats: Schedstats,
    pub features: Features,
    pub layout: Layout,
}

/// One behaviour of a kernel, for listings, comparisons and switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    pub key: &'static str,
    pub value: &'static Variant,
    pub choices: &'static [Variant],
}
