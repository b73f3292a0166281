//! v6.18 (November 2025).

use super::{Kernel, V6_12};
use crate::layout::Structures;

pub const V6_18: Kernel = Kernel { name: "v6.18", structures: Structures::V6_18, ..V6_12 };
