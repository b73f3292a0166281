//! features.h: the scheduler's debug features, one documented line each. The kernel version decides which exist, and
//! their defaults (`versions`).

macro_rules! features {
    ($( $name:ident: $doc:literal; )+) => {
        /// One of `/sys/kernel/debug/sched_features`.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Feature { $( #[doc = $doc] $name, )+ }

        impl Feature {
            pub const ALL: &'static [Feature] = &[ $( Feature::$name, )+ ];

            /// The kernel's spelling.
            pub fn name(self) -> &'static str {
                match self { $( Feature::$name => stringify!($name), )+ }
            }

            pub fn doc(self) -> &'static str {
                match self { $( Feature::$name => $doc, )+ }
            }

            pub fn from_name(name: &str) -> Option<Feature> {
                Feature::ALL.iter().copied().find(|f| f.name() == name)
            }
        }
    };
}

features! {
    GENTLE_FAIR_SLEEPERS: "a woken sleeper is credited half a latency period instead of a whole one";
    START_DEBIT: "a new task starts behind the others by one virtual slice";
    NEXT_BUDDY: "prefer to run the task that was woken last";
    LAST_BUDDY: "prefer to return to the task that was preempted by a wakeup";
    CACHE_HOT_BUDDY: "a buddy counts as cache hot, so load balancing leaves it alone";
    WAKEUP_PREEMPTION: "a woken task may preempt the running one";
    HRTICK: "a timer ends a slice to the microsecond";
    DOUBLE_TICK: "with HRTICK, the tick goes on checking as well";
    LB_BIAS: "load balancing leans on the longer cpu_load averages";
    NONTASK_CAPACITY: "time of interrupts and real-time tasks lowers a CPU's capacity";
    TTWU_QUEUE: "wakeups to CPUs that share no cache are queued there and finished by that CPU";
    SIS_AVG_CPU: "give up looking for an idle CPU when the search costs more than the CPU idles";
    SIS_PROP: "look at a share of the CPUs that is proportional to the idle time";
    WA_IDLE: "wake_affine: pull to the waking CPU when it is, or will be, idle";
    WA_WEIGHT: "wake_affine: compare the loads of the two CPUs";
    WA_BIAS: "wake_affine: lean towards the waking CPU";
    RT_PUSH_IPI: "ask overloaded CPUs to push real-time tasks instead of taking their locks";
    RT_RUNTIME_SHARE: "CPUs borrow real-time bandwidth from each other";
    FORCE_SD_OVERLAP: "treat every NUMA level as overlapping";
    LB_MIN: "never move very small loads";
    ATTACH_AGE_LOAD: "age a load that was detached before it is attached again";
    WARN_DOUBLE_CLOCK: "warn when a run queue's clock is updated twice under one lock";
    HRTICK_DL: "a timer ends a deadline task's budget to the microsecond";
    SIS_UTIL: "look at as many CPUs for an idle one as the cache's utilization leaves likely";
    UTIL_EST: "estimate a task's utilization by what it reached when it last slept";
    UTIL_EST_FASTUP: "let that estimate follow at once when the utilization grows";
    LATENCY_WARN: "warn when a CPU has wanted to reschedule for too long";
    NI_RANDOM: "newly idle balancing is tried as often as it succeeds, by chance";
    NI_RATE: "newly idle balancing that is seldom tried counts as successful";
    ALT_PERIOD: "reckon the slice from all tasks below a group, not from the group's own queue";
    BASE_SLICE: "no slice is shorter than the minimum granularity";
    PLACE_LAG: "a woken task keeps the lag it slept with";
    PLACE_DEADLINE_INITIAL: "a new task begins with half a slice as its deadline";
    PLACE_REL_DEADLINE: "a migrated task keeps its deadline relative to its vruntime";
    RUN_TO_PARITY: "what was picked runs until its lag is zero or its slice ends";
    PREEMPT_SHORT: "a woken task with a shorter slice may break RUN_TO_PARITY";
    PICK_BUDDY: "the next buddy is picked as long as it is eligible";
    DELAY_DEQUEUE: "a sleeper with negative lag stays queued until it has made up for it";
    DELAY_ZERO: "a delayed sleeper's lag is cut to zero when it is dequeued or woken";
    HZ_BW: "a single task whose group has a quota keeps the tick of its nohz_full= CPU";
    PARANOID_AVG: "weights are halved in a queue's average vruntime whenever its sums would overflow";
}

impl Feature {
    /// Whether switching it changes anything here. The others only exist to make a kernel's list complete.
    pub fn has_effect(self) -> bool {
        self != Feature::WARN_DOUBLE_CLOCK
    }
}

/// The features of a running kernel: which exist, and which are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    present: u64,
    on: u64,
}

impl Features {
    /// From a version's table of defaults.
    pub const fn new(table: &[(Feature, bool)]) -> Features {
        let mut features = Features { present: 0, on: 0 };
        let mut i = 0;
        while i < table.len() {
            let (feature, on) = table[i];
            features.present |= 1 << feature as u64;
            if on {
                features.on |= 1 << feature as u64;
            }
            i += 1;
        }
        features
    }

    /// kernel/sched/sched.h: sched_feat(). False for a feature that this version lacks.
    #[inline]
    pub fn sched_feat(&self, feature: Feature) -> bool {
        self.on >> feature as u64 & 1 == 1
    }

    /// Whether either of two features is on.
    #[inline]
    pub fn sched_feat_any(&self, features: [Feature; 2]) -> bool {
        self.on & (1 << features[0] as u64 | 1 << features[1] as u64) != 0
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.present >> feature as u64 & 1 == 1
    }

    /// Switches a feature that this version has; callers that do not know check [`Features::has`] first.
    pub fn set(&mut self, feature: Feature, on: bool) {
        assert!(self.has(feature), "{} is not a feature of this kernel", feature.name());
        if on {
            self.on |= 1 << feature as u64;
        } else {
            self.on &= !(1 << feature as u64);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Feature, bool)> + '_ {
        Feature::ALL.iter().copied().filter(|&f| self.has(f)).map(|f| (f, self.sched_feat(f)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_is_absent_reads_as_off() {
        let mut features = Features::new(&[(Feature::START_DEBIT, true), (Feature::HRTICK, false)]);
        assert!(features.sched_feat(Feature::START_DEBIT));
        assert!(features.has(Feature::HRTICK) && !features.sched_feat(Feature::HRTICK));
        assert!(!features.has(Feature::SIS_PROP) && !features.sched_feat(Feature::SIS_PROP));
        features.set(Feature::START_DEBIT, false);
        assert!(!features.sched_feat(Feature::START_DEBIT));
        assert_eq!(Feature::from_name("SIS_PROP"), Some(Feature::SIS_PROP));
    }
}
