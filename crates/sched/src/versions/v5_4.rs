//! v5.4 (November 2019).

use super::{Kernel, V5_10};

pub const V5_4: Kernel = Kernel { name: "v5.4", ..V5_10 };
