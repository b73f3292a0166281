//! v7.3 (2026), as Debian builds 7.3.4.

use super::{Kernel, V7_2};
use crate::fair::balance::BalanceRules;
use crate::fair::numa::NumaRules;
use crate::topology::DomainRules;

pub const V7_3: Kernel =
    Kernel { name: "v7.3", domains: DomainRules::V7_3, balance: BalanceRules::V7_3, numa: NumaRules::V7_3, ..V7_2 };
