//! To be written.

pub mod csv;
pub mod json;
pub mod mmtests;
pub mod statistics;
pub mod tables;
