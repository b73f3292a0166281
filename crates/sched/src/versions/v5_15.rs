//! v5.15 (October 2021).

use super::{Kernel, V5_10};

pub const V5_15: Kernel = Kernel { name: "v5.15", ..V5_10 };
