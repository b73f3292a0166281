//! v4.19 (October 2018), the long-term release 4.19.108.

use super::{Kernel, V4_16};

pub const V4_19: Kernel = Kernel { name: "v4.19", ..V4_16 };
