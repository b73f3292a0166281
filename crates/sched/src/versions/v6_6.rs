//! v6.6 (October 2023): the first EEVDF.

use super::{Kernel, V6_1};

pub const V6_6: Kernel = Kernel { name: "v6.6", ..V6_1 };
