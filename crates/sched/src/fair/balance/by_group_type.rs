//! Balancing by group types, since v5.5. Each group of CPUs has a type ([`groups::GroupType`]); the busiest group is
//! the one of the most urgent type, and what moves follows from the types of both groups:
//!
//! ```text
//! busiest \ local   has spare                      fully busy       overloaded
//! has spare         numbers of idle CPUs           balanced         balanced
//! fully busy        numbers of idle CPUs           same             balanced
//! overloaded        utilization that is free here  load above average (if noticeably more)
//! ```
//!
//! Misfit tasks, cores with several busy threads, better placed CPUs and affinity trouble come first. Within one LLC,
//! or where siblings are preferred, the numbers of tasks are evened out.

mod asym;
pub(super) mod groups;
pub(super) mod imbalance;
