//! Rules for `[smt]` of a machine file about several threads: not more threads than a core has, and more threads do not
//! do less work.

use super::error::DescriptionError;
use super::{Description, NamedFigure};
use crate::topology::{Part, Topology};

const RULE_THREADS: &str = "threads_N tells of N threads of a core, more than two and no more than it has";
const RULE_WORK: &str = "threads of a core together do no less than fewer of them";

const PREFIX: &str = "smt.threads_";
const PAIR: &str = "smt.speed";

/// The number of threads to which a figure applies, if it is one of these figures.
fn threads(name: &str) -> Option<usize> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

fn most_threads(topology: &Topology) -> usize {
    topology.cores().iter().map(|core: &Part| core.cpus.weight()).max().unwrap_or(1)
}

/// Whether a figure does not apply to a topology, because its cores have fewer threads.
pub(super) fn is_beyond(name: &str, topology: &Topology) -> bool {
    threads(name).is_some_and(|threads| threads > most_threads(topology))
}

/// Removes an extended file's figures for more threads than there are, since they are about other cores. `depth` is the
/// topology's.
pub(super) fn leave_out_beyond(machine: &mut Description, depth: usize) {
    let topology = &machine.topology;
    machine.figures.retain(|named| named.depth <= depth || !is_beyond(&named.name, topology));
}

/// Refuses figures for more threads than a core has, for two threads (which have another name), and for threads that
/// certainly do less work than fewer: the figure's whole range is below. Figures for different numbers of threads are
/// measured or guessed separately.
pub(super) fn check_threads(machine: &Description) -> Result<(), DescriptionError> {
    let wrong = |of: &NamedFigure, found: String, expected: String, rule: &str| {
        Err(DescriptionError { at: of.at.clone(), found, expected, rule: rule.to_string() })
    };
    let most = most_threads(&machine.topology);
    let mut known: Vec<(usize, &NamedFigure)> = Vec::new();
    for named in &machine.figures {
        let Some(threads) = threads(&named.name) else { continue };
        let found = || format!("{} = {}", named.name, named.figure);
        if threads <= 2 {
            let expected =
                if threads == 2 { "smt.speed, which tells of two threads" } else { "none: one is as fast as it is" };
            return wrong(named, found(), expected.to_string(), RULE_THREADS);
        }
        if threads > most {
            let expected = format!("none, as a core of [topology] has {most} at most");
            return wrong(named, found(), expected, RULE_THREADS);
        }
        known.push((threads, named));
    }
    known.extend(machine.figures.iter().find(|named| named.name == PAIR).map(|pair| (2, pair)));
    known.sort_by_key(|&(threads, _)| threads);
    for (index, &(threads, more)) in known.iter().enumerate() {
        for &(of_fewer, fewer) in &known[..index] {
            let (together, before) = (threads as u64 * more.figure.range.1, of_fewer as u64 * fewer.figure.value);
            // Each figure is rounded to a thousandth.
            if together + threads as u64 <= before {
                let least = before.div_ceil(threads as u64);
                let unit = more.figure.unit;
                let found = format!(
                    "{} = {}, at most {} {}, where {} = {}",
                    more.name,
                    more.figure,
                    unit.text(more.figure.range.1),
                    unit.name,
                    fewer.name,
                    fewer.figure
                );
                return wrong(more, found, format!("{} {} or more", unit.text(least), unit.name), RULE_WORK);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{How, builtin, parse};
    use crate::topology::{Numbering, from_synthetic};

    fn figure(name: &str, value: &str, most: &str) -> String {
        format!(
            "{name} = {{ value = {value}, unit = \"ratio\", range = [0.001, {most}], how = \"guess\", source = \"s\" }}\n"
        )
    }

    fn own(extends: &str, rest: &str) -> Result<crate::description::Description, String> {
        let text = format!("name = \"own\"\nextends = \"{extends}\"\ndescription = \"d\"\n{rest}");
        parse(&text, "own.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn threads_are_those_of_a_core_and_more_than_two() {
        let refused =
            |extends: &str, figure: String| own(extends, &format!("[smt]\n{figure}")).expect_err("no such threads");
        assert_eq!(
            refused("xeon-e5-2670v3-2s", figure("threads_4", "0.4", "0.4")),
            "own.toml:5:13: found smt.threads_4 = 0.4 ratio; expected none, as a core of [topology] has 2 at most (rule: \
             threads_N tells of N threads of a core, more than two and no more than it has)"
        );
        let two = refused("sparc-t4-2", figure("threads_2", "0.6", "0.6"));
        assert!(two.contains("expected smt.speed, which tells of two threads (rule: threads_N"), "{two}");
        let one = refused("sparc-t4-2", figure("threads_1", "1", "1"));
        assert!(one.contains("expected none: one is as fast as it is"), "{one}");
        own("sparc-t4-2", &format!("[smt]\n{}", figure("threads_5", "0.35", "0.4"))).expect("eight threads");
    }

    #[test]
    fn what_is_told_of_more_threads_than_there_are_is_not_inherited() {
        let topology =
            "[topology]\nsynthetic = \"pack:2 [numa] l3:1 l2:8 core:1 pu:4\"\nhow = \"guess\"\nsource = \"s\"\n";
        let machine = own("sparc-t4-2", topology).expect("a SPARC of four threads");
        let has = |machine: &crate::description::Description| {
            ["smt.threads_4", "smt.threads_8"].map(|name| machine.figure(name).is_some())
        };
        assert_eq!(has(&machine), [true, false]);
        let (_, text) = builtin().iter().find(|(name, _)| *name == "sparc-t4-2").expect("it ships");
        let lender = parse(text, "sparc").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(has(&lender), [true, true]);
        let two = from_synthetic("pack:2 [numa] l3:1 core:4 pu:2", "t", Numbering::AsListed).expect("valid");
        let borrowed = lender.with_topology(two, "a test", How::Guess);
        assert_eq!(has(&borrowed), [false, false]);
        parse(&borrowed.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn more_threads_do_no_less() {
        // Each of two does 0.6, which is 1.2 together; each of four 0.42, which is 1.68.
        let with = |rest: String| own("sparc-t4-2", &format!("[smt]\n{rest}"));
        assert_eq!(
            with(figure("threads_4", "0.2", "0.29")).expect_err("less than two"),
            "own.toml:5:13: found smt.threads_4 = 0.2 ratio, at most 0.29 ratio, where smt.speed = 0.6 ratio; expected 0.3 ratio or \
             more (rule: threads of a core together do no less than fewer of them)"
        );
        let eight = with(figure("threads_8", "0.2", "0.2")).expect_err("less than four");
        assert!(eight.contains("where smt.threads_4 = 0.42 ratio; expected 0.21 ratio or more"), "{eight}");
        for fine in
            [figure("threads_4", "0.3", "0.3"), figure("threads_4", "0.2", "0.3"), figure("threads_3", "0.4", "0.4")]
        {
            with(fine).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
