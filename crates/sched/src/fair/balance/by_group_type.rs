//! Balancing by the types of groups, since v5.5. Each group of CPUs is of one type ([`groups::GroupType`]); the busiest is
//! the one of the most urgent type, and what moves follows from the two types:
//!
//! ```text
//! busiest \ local   has spare                      fully busy       overloaded
//! has spare         numbers of idle CPUs           balanced         balanced
//! fully busy        numbers of idle CPUs           same             balanced
//! overloaded        utilization that is free here  load above average (if noticeably more)
//! ```
//!
//! and misfit tasks, cores with several busy threads, better placed CPUs and affinity trouble come first. In one cache, or
//! where siblings are preferred, it is the numbers of tasks that are evened out.

mod asym;
pub(super) mod groups;
pub(super) mod imbalance;
