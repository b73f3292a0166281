//! Measures how long other tasks take: the first process of many benchmarks.

use sim::program::{Op, Outcome, TaskSpec};
use units::Ns;

/// A process that starts `tasks`, waits for them to end, and reports in series 0 how long all of it took, in nanoseconds.
pub fn timed(tasks: impl IntoIterator<Item = TaskSpec>) -> TaskSpec {
    let mut tasks: std::vec::IntoIter<TaskSpec> = tasks.into_iter().collect::<Vec<_>>().into_iter();
    let mut began: Option<Ns> = None;
    let mut waits = tasks.len();
    let mut reported = false;
    TaskSpec::new("main", move |last: Outcome| {
        let began = *began.get_or_insert(last.now);
        if let Some(task) = tasks.next() {
            return Op::Fork(Box::new(task));
        }
        if waits > 0 {
            waits -= 1;
            return Op::Wait;
        }
        if std::mem::replace(&mut reported, true) {
            return Op::Exit;
        }
        Op::Report { series: 0, value: (last.now - began).0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instance;
    use crate::fixture::{boot, play};
    use os::Os;
    use sched::versions::V4_15;
    use sim::engine::Sample;
    use sim::program::Steps;

    struct Two;

    impl Instance for Two {
        fn start(&self, _os: &mut Os) -> Vec<TaskSpec> {
            let work = |ms| TaskSpec::new("work", Steps([Op::RunFor(Ns::from_ms(ms))].into_iter()));
            vec![timed([work(3), work(5)])]
        }

        fn samples(&self, reported: &[Sample]) -> Vec<u64> {
            reported.iter().map(|sample| sample.value).collect()
        }
    }

    #[test]
    fn it_takes_as_long_as_the_longest_where_each_has_a_cpu() {
        assert_eq!(play(Box::new(Two), boot::<false>(3, V4_15, None)).rows(), [[5_000_000]]);
        assert_eq!(play(Box::new(Two), boot::<false>(1, V4_15, None)).rows(), [[8_000_000]]);
    }
}
