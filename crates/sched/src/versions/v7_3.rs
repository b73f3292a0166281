//! v7.3 (2026), as Debian builds 7.3.4.

use super::{Kernel, V7_2};
use crate::layout::Structures;

pub const V7_3: Kernel = Kernel { name: "v7.3", structures: Structures::V7_3, ..V7_2 };
