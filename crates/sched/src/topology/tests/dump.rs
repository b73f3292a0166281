//! Everything that a version's domains contain, in the format in which the recorded kernels were printed.

use crate::topology::*;
use std::fmt::Write;
use units::{CpuId, CpuMask};

/// Which fields the version has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    V4_5,
    V4_15,
    V6_1,
    V6_12,
}

impl Era {
    pub const ALL: [(&str, Era, DomainRules); 4] = [
        ("v4.5", Era::V4_5, DomainRules::V4_5),
        ("v4.15", Era::V4_15, DomainRules::V4_15),
        ("v6.1", Era::V6_1, DomainRules::V6_1),
        ("v6.12", Era::V6_12, DomainRules::V6_12),
    ];
}

fn cpus(mask: &CpuMask) -> String {
    if mask.is_empty() {
        return "-".to_string();
    }
    mask.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

/// A pointer to a domain is printed as its level, -1 for none.
fn level(domains: &Domains, sd: Option<SdId>) -> i64 {
    sd.map_or(-1, |sd| i64::from(domains[sd].level))
}

/// The whole dump; `none` if the kernel refuses to build.
pub fn dump(domains: &Domains, era: Era) -> String {
    if domains.warnings.iter().any(|warning| matches!(warning, DomainWarning::SpanNotSane { .. })) {
        return "none\n".to_string();
    }
    let mut out = String::new();
    dump_all(&mut out, domains, era).expect("writing to a string");
    out
}

fn dump_all(out: &mut String, domains: &Domains, era: Era) -> std::fmt::Result {
    let numa = &domains.numa;
    writeln!(
        out,
        "type {} max {} levels {}",
        numa.sched_numa_topology_type as u32,
        numa.sched_max_numa_distance,
        numa.sched_domains_numa_distance.len()
    )?;
    for (cpu, _) in domains.sd.iter() {
        dump_cpu(out, domains, era, cpu)?;
        for sd in domains.for_each_domain(cpu) {
            dump_domain(out, domains, era, sd)?;
            for sg in domains.groups(sd) {
                dump_group(out, domains, era, sd, sg)?;
            }
        }
    }
    Ok(())
}

fn dump_cpu(out: &mut String, domains: &Domains, era: Era, cpu: CpuId) -> std::fmt::Result {
    let level = |sd| level(domains, sd);
    write!(out, "cpu{cpu} llc {}/{}/{}", level(domains.sd_llc[cpu]), domains.sd_llc_size[cpu], domains.sd_llc_id[cpu])?;
    write!(out, " numa {}", level(domains.sd_numa[cpu]))?;
    if era == Era::V4_5 {
        write!(out, " busy {}", level(domains.sd_busy[cpu]))?;
    }
    write!(out, " asym {}", level(domains.sd_asym_packing[cpu]))?;
    if era >= Era::V6_1 {
        write!(out, " {}", level(domains.sd_asym_cpucapacity[cpu]))?;
    }
    if era >= Era::V6_12 {
        write!(out, " share {}", domains.sd_share_id[cpu])?;
    }
    if era >= Era::V4_15 {
        let busy = domains.sd_llc_shared[cpu].map_or(-1, |shared| i64::from(domains[shared].nr_busy_cpus));
        write!(out, " sds {busy}")?;
    }
    let orig = match era {
        Era::V6_12 => domains.arch_scale_cpu_capacity(None, cpu),
        _ => domains.cpu_capacity_orig[cpu],
    };
    writeln!(out, " cap {} {orig}", domains.cpu_capacity[cpu])
}

fn dump_domain(out: &mut String, domains: &Domains, era: Era, id: SdId) -> std::fmt::Result {
    let sd = &domains[id];
    write!(out, " d{} {} {}-{} bf {}", sd.level, sd.name, sd.min_interval, sd.max_interval, sd.busy_factor)?;
    write!(out, " imb {} nice {} bal {}", sd.imbalance_pct, sd.cache_nice_tries, sd.balance_interval)?;
    let flags = sd.flags.value(domains.rules.flag_numbering);
    write!(out, " flags {flags:x} w {} child {}", sd.span_weight, level(domains, sd.child))?;
    if era >= Era::V6_1 {
        write!(out, " numanr {}", sd.imb_numa_nr)?;
        write!(out, " nw {} {} {}", sd.newidle_call, sd.newidle_success, sd.newidle_ratio)?;
    } else {
        write!(out, " idx {} {} {}", sd.busy_idx, sd.idle_idx, sd.newidle_idx)?;
        write!(out, " {} {} gain {}", sd.wake_idx, sd.forkexec_idx, sd.smt_gain)?;
    }
    writeln!(out, " span {}", cpus(domains.sched_domain_span(id)))
}

fn dump_group(out: &mut String, domains: &Domains, era: Era, sd: SdId, id: SgId) -> std::fmt::Result {
    let sg = &domains[id];
    let sgc = &domains[sg.sgc];
    write!(out, "  g ")?;
    if era >= Era::V4_15 {
        write!(out, "{} ", sgc.id)?;
    }
    write!(out, "{} mask {}", cpus(domains.sched_group_span(id)), cpus(domains.group_balance_mask(id)))?;
    write!(out, " bal {} w {} cap {}", domains.group_balance_cpu(id), sg.group_weight, sgc.capacity)?;
    if era == Era::V4_5 {
        write!(out, " busy {}", sgc.nr_busy_cpus)?;
    } else {
        write!(out, " min {}", sgc.min_capacity)?;
    }
    if era >= Era::V6_1 {
        let flags = sg.flags.value(domains.rules.flag_numbering);
        write!(out, " max {} flags {flags:x}", sgc.max_capacity)?;
    }
    if era >= Era::V6_12 {
        write!(out, " cores {}", sg.cores)?;
    }
    if era >= Era::V4_15 {
        let packed = domains[sd].flags.has(SdFlags::SD_ASYM_PACKING);
        let preferred = sg.asym_prefer_cpu.filter(|_| packed);
        write!(out, " asym {}", preferred.map_or(-1, |cpu| i64::from(cpu.0)))?;
    }
    writeln!(out, " upd {}", sgc.next_update)
}
