//! placeholder
pub enum SchedstatVersion { A }
pub fn schedstat() {}
