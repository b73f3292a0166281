//! Balancing by average load, until v5.4: the busiest group is the one with the most load per capacity, and load is
//! what moves. Exceptions deal with what averages do not show (affinity, too few tasks, SMT siblings, small CPUs).

pub(super) mod groups;
mod imbalance;
