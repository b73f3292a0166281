//! v7.3 (2026), as Debian builds 7.3.4.

use super::{Kernel, V7_2};
use crate::fair::load::LoadRules;
use crate::fair::rules::EntityRules;
use crate::sysctl;

pub const V7_3: Kernel =
    Kernel { name: "v7.3", load: LoadRules::V7_3, entity: EntityRules::V7_3, tunables: sysctl::V7_3, ..V7_2 };
