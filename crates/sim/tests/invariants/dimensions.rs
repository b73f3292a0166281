//! What a case may have beside its ensembles: tasks of other classes, CPUs that come and go, partitions, tunables that change in
//! the middle of a run, groups that are weighed again, CPUs of two sizes, behaviours of other kernels. Each comes by a stream of
//! its own, so that a seed means what it meant before there was another dimension.

use super::case::{Case, Ensemble, Kind, Step};
use sched::attr::{ClampRequest, SchedAttr, SchedFlags};
use sched::behaviour::Rules;
use sched::core::cgroup::GroupFile;
use sched::deadline::budget::Constrained;
use sched::pelt::Pelt;
use sched::rt::RtStatistics;
use sched::sched::Policy;
use sched::syscalls::NiceChange;
use sched::sysctl::Tunable;
use sched::versions::Kernel;
use sched::versions::Setting;
use sim::timeline::Change;
use units::{CpuId, CpuMask, Ns, Prng};

const MS: u64 = 1_000_000;

const fn deadline(runtime: u64, deadline: u64, period: u64, reclaim: bool) -> SchedAttr {
    SchedAttr {
        sched_policy: Policy::Deadline,
        sched_flags: SchedFlags { reclaim, ..SchedAttr::NORMAL.sched_flags },
        sched_runtime: runtime,
        sched_deadline: deadline,
        sched_period: period,
        ..SchedAttr::NORMAL
    }
}

const fn real_time(sched_policy: Policy, sched_priority: u32) -> SchedAttr {
    SchedAttr { sched_policy, sched_priority, ..SchedAttr::NORMAL }
}

/// What a step may ask of sched_setattr().
pub const ATTRS: [SchedAttr; 12] = [
    real_time(Policy::Fifo, 1),
    real_time(Policy::Fifo, 60),
    real_time(Policy::Rr, 10),
    real_time(Policy::Rr, 10),
    deadline(MS, 10 * MS, 0, false),
    deadline(4 * MS, 10 * MS, 0, false),
    deadline(2 * MS, 8 * MS, 20 * MS, false),
    deadline(MS, 5 * MS, 5 * MS, true),
    SchedAttr::NORMAL,
    SchedAttr { sched_runtime: MS, ..SchedAttr::NORMAL },
    SchedAttr::clamps(ClampRequest::Set(300), ClampRequest::Set(700)),
    SchedAttr::clamps(ClampRequest::Reset, ClampRequest::Reset),
];

/// Of these the deadline class's, and the others.
const DEADLINE: std::ops::Range<usize> = 4..8;
const FAIR_AND_REAL_TIME: [usize; 8] = [0, 1, 2, 3, 8, 9, 10, 11];

/// What a step may write about a group: its weight, or that it is idle. Each kernel has its own files for that, and takes what it
/// takes.
pub const WEIGHTS: [(GroupFile, &str); 8] = [
    (GroupFile::Shares, "2"),
    (GroupFile::Shares, "10000"),
    (GroupFile::Weight, "1"),
    (GroupFile::Weight, "10000"),
    (GroupFile::WeightNice, "-10"),
    (GroupFile::WeightNice, "5"),
    (GroupFile::Idle, "1"),
    (GroupFile::Idle, "0"),
];

const SYSCTLS: [(Tunable, u64); 8] = [
    (Tunable::sched_rt_runtime, 20_000),
    (Tunable::sched_rt_runtime, 950_000),
    (Tunable::sched_rt_period, 100_000),
    (Tunable::sched_autogroup_enabled, 0),
    (Tunable::sched_autogroup_enabled, 1),
    (Tunable::sched_schedstats, 1),
    (Tunable::sched_cfs_bandwidth_slice, 1_000),
    (Tunable::sched_base_slice, 500_000),
];

/// Behaviours that are mixed: of placement, balancing, the real-time and deadline classes, pressure and new nice levels. How weights
/// and averages are scaled, and what is counted of them, belongs together in each kernel.
const MIXED: [&str; 6] = ["wake.", "balance.", "dl.", "rt.", "psi", "core.nice_change"];

impl Case {
    /// The same with some of the other dimensions.
    pub fn with_dimensions(self) -> Case {
        let mut random = Prng::stream(self.seed, "dimensions", 0);
        let mut case = self;
        if random.below(2) == 0 {
            case.mix_classes(&mut random);
        }
        if random.below(3) == 0 {
            case.weigh_groups(&mut random);
        }
        if random.below(2) == 0 {
            case.change_machine(&mut random);
        }
        if random.below(6) == 0 {
            case.small_cpus = Some(100 + random.below(800) as u32);
        }
        if random.below(4) == 0 {
            case.mix_behaviours(&mut random);
        }
        case
    }

    /// Steps that make their task one of another class. A task that forks others stays fair: a deadline task may not fork. Who has
    /// left the deadline class does not come back: a task whose budget ended just as it left is throttled for ever if it returns
    /// between its next period and its 0-lag time, in the kernel as well.
    fn mix_classes(&mut self, random: &mut Prng) {
        for ensemble in &mut self.ensembles {
            let forks = matches!(ensemble.kind, Kind::Forks { .. });
            for (member, steps) in ensemble.members.iter_mut().enumerate().skip(usize::from(forks)) {
                // Who fills a shelf does its steps once for each of the others.
                let once = ensemble.rounds == 1 && !(member == 0 && matches!(ensemble.kind, Kind::Shelf { .. }));
                match random.below(4) {
                    0 => insert(random, steps, |random| Step::Attr(FAIR_AND_REAL_TIME[random.below(8) as usize])),
                    1 => {
                        steps.retain(|step| !matches!(step, Step::Policy(_)));
                        let at = random.below(steps.len() as u64 + 1) as usize;
                        steps.insert(at, Step::Attr(DEADLINE.start + random.below(DEADLINE.len() as u64) as usize));
                        if once && random.below(2) == 0 {
                            insert_last(random, steps);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn weigh_groups(&mut self, random: &mut Prng) {
        let nr_groups = self.groups.len() as u64;
        if nr_groups == 0 {
            return;
        }
        for steps in self.ensembles.iter_mut().flat_map(|e: &mut Ensemble| &mut e.members) {
            if random.below(3) == 0 {
                insert(random, steps, |random| {
                    Step::Weigh(1 + random.below(nr_groups) as usize, random.below(WEIGHTS.len() as u64) as usize)
                });
            }
        }
    }

    /// CPUs go and come, partitions are made and undone, tunables change: for as long as most cases run.
    fn change_machine(&mut self, random: &mut Prng) {
        let nr_cpus = self.nr_cpus() as u64;
        for _ in 0..1 + random.below(12) {
            let at = Ns::from_us(random.below(150_000));
            let cpu = CpuId::new(random.below(nr_cpus) as usize);
            let change = match random.below(6) {
                0 | 1 => Change::CpuOffline(cpu),
                2 | 3 => Change::CpuOnline(cpu),
                4 => Change::Partitions(partitions(random, nr_cpus)),
                _ => {
                    let (tunable, value) = SYSCTLS[random.below(SYSCTLS.len() as u64) as usize];
                    Change::Sysctl(tunable, value)
                }
            };
            self.timeline.push((at, change));
        }
        self.timeline.sort_by_key(|(at, _)| *at);
    }

    /// The same with these behaviours, `KEY=VALUE,...`, where its kernel has them.
    pub fn with_behaviours(self, text: &str) -> Self {
        let mut case = self;
        let settings = sched::versions::kernel(case.kernel).expect("a kernel that is built").settings();
        for (key, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
            let setting = settings.iter().find(|setting| setting.key == key);
            let choice = setting.and_then(|setting| setting.choices.iter().find(|choice| choice.name == value));
            case.mixed.extend(setting.zip(choice).map(|(setting, choice)| (setting.key, choice.name)));
        }
        case
    }

    fn mix_behaviours(&mut self, random: &mut Prng) {
        let kernel = sched::versions::kernel(self.kernel).expect("a kernel that is built");
        // A new behaviour elsewhere leaves the cases as they are.
        let mixed = |setting: &Setting| MIXED.iter().any(|room| setting.key.starts_with(room));
        let settings: Vec<Setting> = kernel.settings().into_iter().filter(mixed).collect();
        for _ in 0..1 + random.below(4) {
            let setting = &settings[random.below(settings.len() as u64) as usize];
            let value = setting.choices[random.below(setting.choices.len() as u64) as usize].name;
            self.mixed.push((setting.key, value));
        }
    }

    /// Whether what a task of any class runs is told by a tracepoint.
    pub fn tells_all(&self) -> bool {
        self.built().rt.statistics == RtStatistics::Told
    }

    /// Whether a load average is one of weights that the task has had. Sums that carry the weights they were made with (until v4.11) forget
    /// an old weight in time, and nobody touches them when it changes. Sums without weights are of the present weight, so that a new nice
    /// level must change average and sum (reweight_task(), since v4.15); a task that is weighed anew in another class keeps its
    /// average, and is attached with it to a fair queue: a sum of its new weight that has the old average
    /// (attach_entity_load_avg()), which the next weight multiplies. A mix of the two promises nothing.
    pub fn averages_are_bounded(&self) -> bool {
        let built = self.built();
        match (built.pelt, built.core.nice_change) {
            (Pelt::ByPeriod, NiceChange::WeightOnly) => true,
            (Pelt::ByPeriod, _) | (_, NiceChange::WeightOnly) => false,
            (_, NiceChange::Reweight) => !self.has_classes(),
        }
    }

    /// How often a task's utilization may be attached to a queue a second time. A task of another class that passes through a group whose
    /// queue on its CPU nobody has used yet takes on that queue's clock, zero (set_task_rq_fair()). When it becomes a fair task its
    /// enqueue takes it for one that has moved and attaches it (update_load_avg()), and then switched_to_fair() does so too.
    pub fn attached_twice(&self) -> u64 {
        let moves = self.steps().any(|step| matches!(step, Step::Group(_) | Step::Setsid | Step::Autogroup(_)));
        let changes = |step: &&Step| matches!(step, Step::Attr(_) | Step::Policy(_));
        let of = |e: &Ensemble| u64::from(e.rounds) * e.members.iter().flatten().filter(changes).count() as u64;
        if moves { self.ensembles.iter().map(of).sum() } else { 0 }
    }

    /// Whether a group has a quota, from the beginning or later.
    pub fn has_limits(&self) -> bool {
        !self.limits.is_empty() || self.steps().any(|step| matches!(step, Step::Limit(..)))
    }

    /// Whether entities that owe or are owed some slices may come to have shorter ones, or another weight: their lag is of the old.
    pub fn mixes_slices(&self) -> bool {
        let slice = |number: usize| ATTRS[number].sched_policy.fair_policy() && ATTRS[number].sched_runtime != 0;
        self.steps().any(|step| match step {
            Step::Attr(number) => slice(*number),
            Step::Weigh(..) => true,
            _ => false,
        })
    }

    /// Whether a deadline task's budget bounds what it runs: not where it reclaims what others leave, where a slow CPU's time counts
    /// less, and where tasks whose deadline is before their period's end are given more than they reserved.
    pub fn reservations_hold(&self) -> bool {
        let reclaims = |step: &Step| matches!(step, Step::Attr(number) if ATTRS[*number].sched_flags.reclaim);
        self.small_cpus.is_none()
            && self.built().dl.constrained == Constrained::NextPeriod
            && !self.steps().any(reclaims)
    }

    /// Whether grub_reclaim() may wrap, as the kernel's arithmetic does, before v6.5 and since: a reclaiming task that has more bandwidth than a
    /// lowered `sched_rt_runtime_us` leaves all together is charged 2^44 ns at once, and waits for hours until that is made good.
    pub fn reclaim_may_wrap(&self) -> bool {
        let reclaims = |step: &Step| matches!(step, Step::Attr(number) if ATTRS[*number].sched_flags.reclaim);
        let lowered = |(_, change): &(Ns, Change)| matches!(change, Change::Sysctl(Tunable::sched_rt_runtime, _));
        self.steps().any(reclaims) && self.timeline.iter().any(lowered)
    }

    fn built(&self) -> Kernel {
        let mut kernel = *sched::versions::kernel(self.kernel).expect("a kernel that is built");
        for (key, value) in &self.mixed {
            kernel.set(key, value).expect("a behaviour of this kernel");
        }
        kernel
    }

    /// Whether a step asks for another class.
    pub fn has_classes(&self) -> bool {
        self.steps().any(|step| matches!(step, Step::Attr(_)))
    }
}

fn insert_last(random: &mut Prng, steps: &mut Vec<Step>) {
    steps.push(Step::Attr(FAIR_AND_REAL_TIME[random.below(8) as usize]));
    steps.push(Step::Run(Ns::from_us(random.below(3_000))));
}

fn insert(random: &mut Prng, steps: &mut Vec<Step>, step: impl Fn(&mut Prng) -> Step) {
    for _ in 0..1 + random.below(3) {
        let at = random.below(steps.len() as u64 + 1) as usize;
        let step = step(random);
        steps.insert(at, step);
    }
}

/// None, or one or two that share no CPU.
fn partitions(random: &mut Prng, nr_cpus: u64) -> Vec<CpuMask> {
    let first = random.below(nr_cpus + 1) as usize;
    let second = random.between(first as u64, nr_cpus) as usize;
    let part = |from: usize, to: usize| (from..to).map(CpuId::new).collect::<CpuMask>();
    [part(0, first), part(first, second)].into_iter().filter(|part| !part.is_empty()).collect()
}
