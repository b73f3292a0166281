//! v7.3 (2026), as Debian builds 7.3.4: tasks of all groups compete on one queue of their CPU.

use super::{Kernel, V7_2};
use crate::fair::balance::BalanceRules;
use crate::fair::load::LoadRules;
use crate::fair::numa::NumaRules;
use crate::fair::rules::EntityRules;
use crate::layout::Structures;
use crate::sysctl;
use crate::topology::DomainRules;

pub const V7_3: Kernel = Kernel {
    name: "v7.3",
    domains: DomainRules::V7_3,
    load: LoadRules::V7_3,
    entity: EntityRules::V7_3,
    balance: BalanceRules::V7_3,
    numa: NumaRules::V7_3,
    tunables: sysctl::V7_3,
    structures: Structures::V7_3,
    ..V7_2
};
