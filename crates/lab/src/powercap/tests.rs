use super::*;
use crate::experiment::{Draft, Purpose};
use crate::machines::tests::Table;
use crate::run::{Run, Wanted, run};
use crate::setup::Setup;
use machine::description::{builtin, parse};
use std::collections::BTreeMap;
use units::Ns;

/// As many tasks as a phone has CPUs.
const LOAD: &str = "task all count=8: run 200ms\n";
/// Four tasks, each busy for 3 ms in 5.
const BURSTS: &str = "task some count=4: 60 x (run 3ms; sleep 2ms)\n";
/// One CPU busy for half a millisecond in twenty.
const NEXT_TO_IDLE: &str = "task small: 20 x (run 500us; sleep 19500us)\n";

const GOVERNED: &str = "v6.12,cpufreq.driver=scmi";
/// 2 W over 20 ms: each interval replaces a twentieth of the mean.
const LIMITED: &str = ",powercap.constraint_0_power_limit_uw=2000000,powercap.constraint_0_time_window_us=20000";
/// All eight cores at their highest frequencies: 4 * 193.3 + 4 * 1297.8 mW.
const MOST_UW: u64 = 5_964_400;

fn setup(arm: &str, tasks: &str) -> Result<Setup, String> {
    let files = Table(BTreeMap::from([("tasks.txt", tasks.to_string())]));
    let mut draft = Draft::default();
    draft.machine_option("snapdragon-845");
    draft.workload_option("script:file=tasks.txt").unwrap();
    draft.arm_options(&[arm.to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).map_err(|mistake| mistake.to_string())?;
    Ok(experiment.setup(&experiment.jobs()[0]))
}

/// A phone with these tasks, up to a given time.
fn phone_until(arm: &str, tasks: &str, until: Option<Ns>) -> Run {
    let setup = setup(arm, tasks).unwrap_or_else(|error| panic!("{error}"));
    let run = run(&setup, Wanted { until, ..Wanted::default() }, &Location::of("a test"));
    run.unwrap_or_else(|mistake| panic!("{mistake}")).expect("nobody interrupted")
}

fn phone(arm: &str, tasks: &str) -> Run {
    phone_until(arm, tasks, None)
}

fn result(run: &Run) -> PowerLimitResult {
    PowerLimitResult::of(&run.hardware).expect("a limit")
}

#[test]
fn a_loaded_phone_settles_at_its_limit() {
    for governor in ["schedutil", "performance", "ondemand"] {
        let free = format!("{GOVERNED},cpufreq.governor={governor}");
        let loaded = |arm: &str| phone_until(arm, LOAD, Some(Ns::from_ms(150)));
        let (free, limited) = (loaded(&free), loaded(&format!("{free}{LIMITED}")));
        let taken = free.energy.as_ref().expect("powers").taken.clone();
        assert!(taken.total_aj() / u128::from(taken.duration.0) > 5_000_000, "{governor}: a load is one");
        let after = result(&limited);
        let whole = limited.hardware.idle.duration.ns().0;
        // ondemand takes 20 ms before its first request.
        assert!(after.packages[0].held_ns * 10 > whole * 8, "{governor}: {after:?} of {whole}");
        // Neighbouring operating points are up to half a watt apart; the mean lies between two.
        let [at_last] = limited.hardware.power_limit.as_ref().expect("a limit").packages[..] else {
            panic!("a package")
        };
        assert!((1_900_000..2_100_000).contains(&at_last.mean_uw), "{governor}: {at_last:?}");
        assert!((1_900_000..2_100_000).contains(&after.packages[0].mean_uw), "{governor}: {after:?}");
        let told = text(&limited.hardware);
        assert!(told.starts_with("limit of a package: 2.000 W over 20 ms\npackage 0: held by it for "), "{told}");
        assert!(text(&free.hardware).is_empty() && free.hardware.power_limit.is_none());
    }
}

/// Over any period, the mean exceeds the limit by no more than one interval at full power can add.
#[test]
fn the_mean_is_never_far_above_the_limit() {
    for (tasks, governor) in
        [(LOAD, "schedutil"), (LOAD, "performance"), (BURSTS, "schedutil"), (BURSTS, "performance")]
    {
        for until in (40..70).step_by(2) {
            let arm = format!("{GOVERNED},cpufreq.governor={governor}{LIMITED}");
            let run = phone_until(&arm, tasks, Some(Ns::from_ms(until)));
            let mean_uw = run.hardware.power_limit.as_ref().expect("a limit").packages[0].mean_uw;
            assert!(mean_uw <= 2_000_000 + MOST_UW / 20, "{governor}, {until} ms, {tasks}: {mean_uw}");
        }
    }
}

#[test]
fn a_phone_that_was_idle_may_take_more_at_first() {
    let taken = |begins: &str| {
        let arm = format!("{GOVERNED},cpufreq.governor=performance{LIMITED}{begins}");
        let run = phone_until(&arm, LOAD, Some(Ns::from_ms(30)));
        run.energy.expect("powers").taken.total_aj() / 1_000_000_000_000_000
    };
    let (default, limit, idle) = (taken(""), taken(",powercap.begins_at=limit"), taken(",powercap.begins_at=idle"));
    assert_eq!(default, limit);
    // A window holds 40 mJ at 2 W. A mean that begins at idle leaves all of that to be taken first, and besides what it
    // forgets meanwhile.
    assert!(idle > limit + 20 && idle < limit + 60, "{idle} mJ, and {limit}");
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    // With so little to do the phone draws less than 1.3 W, and it never draws more than 6 W.
    let cases = [(NEXT_TO_IDLE, "1300000"), (LOAD, "5964400"), (LOAD, "5964399"), (LOAD, "9000000")];
    for (tasks, limit) in cases {
        for governor in ["schedutil", "performance"] {
            let arm = format!("{GOVERNED},cpufreq.governor={governor}");
            let limits =
                format!(",powercap.constraint_0_power_limit_uw={limit},powercap.constraint_0_time_window_us=100000");
            let (free, limited) = (phone(&arm, tasks), phone(&format!("{arm}{limits}"), tasks));
            assert_eq!(free.outcome, limited.outcome, "{limit} uW, {governor}");
            assert_eq!(free.hardware.energy, limited.hardware.energy);
            assert_eq!(free.hardware.frequencies, limited.hardware.frequencies);
            assert_eq!(result(&limited).packages[0].held_ns, 0, "{limit} uW, {governor}");
        }
    }
}

#[test]
fn a_setup_says_what_it_limits_and_replays() {
    let limited = setup(&format!("{GOVERNED}{LIMITED}"), BURSTS).unwrap();
    assert_eq!(limited.kernel.powercap.len(), 2);
    assert!(!setup(GOVERNED, BURSTS).unwrap().to_json().contains("powercap"));
    let again: Setup = serde_json::from_str(&limited.to_json()).unwrap();
    assert_eq!(again, limited);
    let (one, other) = (phone(&format!("{GOVERNED}{LIMITED}"), BURSTS), phone(&format!("{GOVERNED}{LIMITED}"), BURSTS));
    assert_eq!((one.outcome.digest, one.hardware), (other.outcome.digest, other.hardware));
    // If nothing costs anything, frequencies do not matter to time.
    let free = Setup { costs: false, ..limited };
    let run = run(&free, Wanted::default(), &Location::of("a test")).unwrap().expect("nobody interrupted");
    assert_eq!(run.hardware.power_limit, None);
}

#[test]
fn what_a_machine_cannot_limit_is_refused() {
    let refused = |arm: &str| setup(arm, LOAD).expect_err("a bad limit");
    let set = |rest: &str| refused(&format!("{GOVERNED},powercap.{rest}"));
    let limit = "constraint_0_power_limit_uw=2000000";
    let low = set("constraint_0_power_limit_uw=971599");
    let expected = "found powercap.constraint_0_power_limit_uw = 971599, which cores of snapdragon-845 exceed at their lowest frequencies; \
                    expected 971600 or more";
    assert!(low.ends_with(expected), "{low}");
    for value in ["0", "-1", "2W", "10000000001"] {
        let error = set(&format!("constraint_0_power_limit_uw={value}"));
        assert!(error.contains("expected a whole number from 1 to 10000000000"), "{error}");
    }
    assert!(set(limit).contains("without a window; expected powercap.constraint_0_time_window_us beside it"));
    for value in ["0", "999"] {
        let error = set(&format!("{limit},powercap.constraint_0_time_window_us={value}"));
        assert!(error.contains("expected a whole number from 1000 to 10000000000"), "{error}");
    }
    assert!(set("constraint_0_time_window_us=1000").contains("nothing limits what packages of snapdragon-845 draw"));
    assert!(set("enabled=0").contains("nothing limits what packages of snapdragon-845 draw"));
    let other = set("constraint_1_power_limit_uw=2000000");
    assert!(
        other.contains("the unknown file of powercap `constraint_1_power_limit_uw`; expected `constraint_0_"),
        "{other}"
    );
    let twice = set(&format!("{limit},powercap.{limit}"));
    assert!(twice.contains("for the second time"), "{twice}");
    assert!(refused(&format!("{GOVERNED}{LIMITED},powercap.begins_at=0")).contains("value of powercap.begins_at"));
    assert!(refused(&format!("{GOVERNED}{LIMITED},powercap.enabled=2")).contains("from 0 to 1"));
    let fixed = refused(&format!("v6.12{LIMITED}"));
    assert!(
        fixed.contains(
            "the clocks of snapdragon-845 are fixed, as it names no driver; expected cpufreq.driver beside it"
        ),
        "{fixed}"
    );
}

#[test]
fn a_machine_file_may_say_it() {
    let (_, text) = builtin().iter().find(|(name, _)| name.starts_with("snapdragon")).expect("it ships");
    let figure = |name: &str, value: &str, unit: &str| {
        let rest = "how = \"guess\", source = \"made up\"";
        format!("{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], {rest} }}\n")
    };
    let machine = |lines: &str| {
        let text = text.replacen("[frequency]\n", &format!("[frequency]\n{lines}"), 1);
        parse(&text, "m.toml").unwrap_or_else(|error| panic!("{error}"))
    };
    let window = figure("power_window", "500", "ms");
    let whole = machine(&(figure("power_limit", "3", "W") + &window));
    let choose = |machine: &Description, governed: bool, settings: &[(&str, &str)]| {
        let written = |text: &str| Written::option("--arm", text);
        let settings: Vec<_> = settings.iter().map(|(name, value)| (written(name), written(value))).collect();
        choose(machine, governed, &settings).map_err(|mistake| mistake.to_string())
    };
    let ms = |n: u64| Ps(n * 1_000_000_000);
    let limit = |limit_uw, window| PowerLimit { limit_uw, window, interval: ms(1), begins_at: BeginsAt::Limit };
    assert_eq!(choose(&whole, true, &[]), Ok(Some(limit(3_000_000, ms(500)))));
    assert_eq!(choose(&whole, true, &[(LIMIT, "2000000")]), Ok(Some(limit(2_000_000, ms(500)))));
    assert_eq!(choose(&whole, true, &[(WINDOW, "2000")]), Ok(Some(limit(3_000_000, ms(2)))));
    assert_eq!(choose(&whole, true, &[("enabled", "0")]), Ok(None));
    assert_eq!(choose(&whole, false, &[("enabled", "0")]), Ok(None));
    let fixed = choose(&whole, false, &[]).expect_err("nothing moves its clocks");
    assert!(fixed.starts_with("snapdragon-845, [frequency]: found power_limit, but the clocks"), "{fixed}");
    // Only an arm may set a window without a limit.
    let alone = machine(&window);
    assert_eq!(choose(&alone, false, &[]), Ok(None));
    assert_eq!(choose(&alone, true, &[(LIMIT, "2000000")]), Ok(Some(limit(2_000_000, ms(500)))));
}
