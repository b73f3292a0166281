//! Balancing by average load, until v5.4: the busiest group is the one with the most load for its capacity, and load is
//! what moves. What averages do not show (affinity, too few tasks, SMT siblings, small CPUs) is dealt with by exceptions.

pub(super) mod groups;
mod imbalance;
