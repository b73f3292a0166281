//! Domains of whole machines.

mod dump;
mod machine;
mod properties;
mod recorded;
mod shapes;
mod special;
mod xeon;

use super::*;

/// The CPU's domains as `NAME:span`, and for each the spans of its groups, in order.
fn outline(domains: &Domains, cpu: u16) -> Vec<(String, Vec<String>)> {
    let domain = |sd| {
        let groups = domains.groups(sd).map(|sg| domains.sched_group_span(sg).list());
        (format!("{}:{}", domains[sd].name, domains.sched_domain_span(sd).list()), groups.collect())
    };
    domains.for_each_domain(CpuId(cpu)).map(domain).collect()
}

/// The same, from a list of literals.
fn expected(domains: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |groups: &[&str]| groups.iter().map(|group| group.to_string()).collect();
    domains.iter().map(|(domain, groups)| (domain.to_string(), owned(groups))).collect()
}
