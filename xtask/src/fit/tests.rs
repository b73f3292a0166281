use super::*;

const EXPERIMENT: &str = "\
name = \"not a table\"
[[workload]]
name = \"tbench4\"
title = \"tbench4-8core\"
published = { source = \"a study, before\", 1 = 442.5, \"Max-90%\" = 20 }
[[workload]]
name = \"pipetest\"
published = { source = \"x\", Mean = 4.48 }
[workload.profile]
title = \"a-profile\"
published = { source = \"x\", tick = [10.5, 0.1], update = [5.0, 4.9] }
";

const CSV: &str = "\
table,workload,parameters,unit,better,label,arm,measure,iteration,value
tbench4-8core,tbench4,interval=10,MB/s,higher,1,a,sample,0,300
tbench4-8core,tbench4,interval=10,MB/s,higher,1,a,mean,,400
tbench4-8core,tbench4,interval=10,MB/s,higher,2,a,mean,,800
pipetest,pipetest,,us per loop,lower,Mean,a,mean,,4.48
a-profile,pipetest,,%,lower,update,a,mean,,2.5
";

#[test]
fn published_rows_meet_simulated_means() {
    let published = published(EXPERIMENT);
    assert_eq!(published.len(), 5);
    let rows = simulated(CSV, &published);
    let seen: Vec<_> = rows.iter().map(|row| (&row.label[..], row.published, row.simulated, row.of_table)).collect();
    assert_eq!(seen, [("1", 442.5, 400.0, 2), ("Mean", 4.48, 4.48, 1), ("update", 5.0, 2.5, 2)]);
    // Each of the two tables has half the weight, and one row is exact. For a profile, time in the function's callees
    // is included.
    let (first, last) = ((442.5f64 / 400.0).ln(), 2f64.ln());
    assert!((error(&rows) - (first.powi(2) + last.powi(2)) / 2.0).abs() < 1e-12);
}

#[test]
fn every_fit_has_its_experiment_with_one_arm_and_prices_that_are_there() {
    let root = crate::root();
    for fit in FREE {
        let file = MachineFile::read(&root.join(format!("machines/{}.toml", fit.machine))).expect("a machine file");
        let base = MachineFile::read(&root.join("machines/bases/linux-x86.toml")).expect("its base");
        let scene = Scene::new(&root, fit, file, base).unwrap_or_else(|error| panic!("{error}"));
        for experiment in &scene.experiments {
            let text = std::fs::read_to_string(experiment).expect("an experiment");
            assert_eq!(text.matches("[[arm]]").count(), 1, "only the arm before is run: {}", experiment.display());
        }
        assert!(!scene.published.is_empty());
        for (number, factor) in fit.free.iter().enumerate() {
            let (low, high) = factor.range;
            assert!((low..=high).contains(&scene.first[number]), "{}: {}", fit.machine, factor.name);
        }
    }
}

#[test]
fn values_are_rounded_to_three_digits() {
    assert_eq!([0.51234, 1.5, 612.7, 15_432.0].map(rounded), [0.512, 1.5, 613.0, 15_400.0]);
}
