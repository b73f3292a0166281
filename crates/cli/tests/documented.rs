//! What README and docs/ tell a reader to type works: every command in them is run in a shortened form, and their
//! quotes of the program's output match what it prints.

mod program;

use program::{folder, run, run_well, words};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// README and the pages of docs/, by name. docs/kernel-map.md is generated, and contains no commands.
fn pages() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_string()];
    for folder in ["docs", "docs/studies"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of pages");
        let files = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        names.extend(files.filter(|file| file.ends_with(".md")).map(|file| format!("{folder}/{file}")));
    }
    names.sort();
    names.into_iter().map(|name| (name.clone(), text(&name))).collect()
}

/// The fenced blocks of a page: the text after the opening fence, and the block's text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').expect("a block has lines")).collect()
}

/// The block of a page that begins with `begins`.
fn block<'a>(page: &'a str, begins: &str) -> &'a str {
    let found = blocks(page).into_iter().find(|(_, text)| text.starts_with(begins));
    found.unwrap_or_else(|| panic!("no block begins with {begins:?}")).1
}

/// The commands of a page that a reader may copy, without the program's name.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for (_, block) in blocks(page) {
        for line in block.replace("\\\n", " ").lines() {
            let program = ["fairground ", "cargo run --release -- "];
            commands.extend(program.iter().find_map(|program| line.trim().strip_prefix(program)).map(words));
        }
    }
    commands
}

/// A workload's option with the least work that its parameters allow; the page's parameters are kept.
fn shortened(workload: &str) -> String {
    // The page's word for any workload.
    let workload = if workload == "W" { "pipetest" } else { workload };
    let (name, given) = workload.split_once(':').unwrap_or((workload, ""));
    let more = match name {
        "pipetest" => "batches=1,loops=2",
        "hackbench-pipes" => "groups=1,loops=2",
        _ => "",
    };
    let mut parameters: Vec<String> = Vec::new();
    for parameter in given.split(',').chain(more.split(',')).filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').expect("a parameter has a value");
        if parameters.iter().any(|known| known.starts_with(&format!("{key}="))) {
            continue;
        }
        let least = more.split(',').find_map(|it| it.strip_prefix(key)?.strip_prefix('='));
        let first = value.split('+').next().expect("never empty");
        parameters.push(format!("{key}={}", least.unwrap_or(first)));
    }
    if parameters.is_empty() { name.to_string() } else { format!("{name}:{}", parameters.join(",")) }
}

/// The same command with less to do; `None` if it takes minutes in any case, or measures this computer.
fn quick(command: &[String]) -> Option<Vec<String>> {
    let slow = ["calibrate", "measure", "reproduce", "fidelity"];
    if slow.contains(&command[0].as_str()) || command.iter().any(|word| word.contains('$')) {
        return None;
    }
    let mut quick = command.to_vec();
    for at in 1..quick.len() {
        match quick[at - 1].as_str() {
            "--workload" => quick[at] = shortened(&quick[at]),
            "--iterations" => quick[at] = "1".to_string(),
            _ => {}
        }
    }
    let mut add = |option: &str, value: &str| {
        if !quick.iter().any(|word| word == option) {
            quick.extend([option.to_string(), value.to_string()]);
        }
    };
    if command[0] == "compare" {
        add("--workload", "pipetest:batches=1,loops=2");
        add("--iterations", "1");
    }
    if command[0] == "sensitivity" {
        add("--iterations", "1");
        add("--figures", "line.llc");
    }
    // A moment within the workload, which begins within a tick of boot.
    if let Some(at) = quick.iter().position(|word| word == "--at") {
        quick[at + 1] = "6".to_string();
        quick.iter_mut().filter(|word| word.ends_with("loops=2")).for_each(|word| word.push_str("000"));
    }
    Some(quick)
}

/// A folder with everything that the commands of all pages name: this project's experiments, and the files that the
/// pages describe.
fn place() -> PathBuf {
    let place = folder("documented");
    fs::create_dir(place.join("experiments")).expect("a folder");
    for name in ["first-light.toml", "rt-app-example.json"] {
        fs::copy(root().join("experiments").join(name), place.join("experiments").join(name)).expect("an experiment");
    }
    let script = text("docs/scripts.md");
    let tasks = block(&script, "[[workload]]").split("\"\"\"").nth(1).expect("tasks").trim_start().to_string();
    assert!(
        text("experiments/script-example.txt").ends_with(&tasks),
        "docs/scripts.md shows the example that there is"
    );
    let short = tasks.replace("1000 x", "3 x").replace("10s", "20ms").replace("100ms", "10ms");
    fs::write(place.join("experiments/script-example.txt"), short).unwrap();
    fs::write(place.join("group.txt"), block(&text("docs/lines.md"), "group /bench")).unwrap();
    let recorded = ["trace", "--machine", "core-i7-3770", "--arm", "v6.1", "--format", "ftrace", "--out", "work.txt"];
    run_well(&place, &[&recorded[..], &["--workload", "pipetest:batches=1,loops=2"]].concat());
    let machine = run_well(&place, &["machines", "import", "host"]).stdout;
    fs::write(place.join("this.toml"), machine).unwrap();
    place
}

#[test]
fn every_command_runs() {
    let place = place();
    run_well(
        &place,
        &[
            "measure",
            "pipetest:batches=1,loops=2",
            "hackbench-pipes:groups=1,loops=2",
            "--iterations",
            "1",
            "--out",
            "real",
        ],
    );
    let mut count = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            let Some(quick) = quick(&command) else { continue };
            let said = run(&place, &quick.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(said.code, 0, "{page}: {}\n  run as {}\n{}", command.join(" "), quick.join(" "), said.stderr);
            count += 1;
        }
    }
    assert!(count >= 20, "{count} commands were found");
}

#[test]
fn every_command_named_in_a_sentence_has_these_options() {
    let place = folder("documented-options");
    for (page, text) in pages() {
        let sentences = text.split("```").step_by(2).collect::<String>();
        let named = sentences.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("fairground "));
        let fenced = commands(&text).into_iter().map(|command| command.join(" "));
        for code in named.map(str::to_string).chain(fenced) {
            let words: Vec<&str> = code.split_whitespace().collect();
            let help = run(&place, &[words[0], "--help"]);
            assert_eq!(help.code, 0, "{page}: `fairground {code}`: {}", help.stderr);
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(
                    help.stdout.contains(&format!("{option} ")) || help.stdout.contains(&format!("{option}\n")),
                    "{page}: `fairground {code}`: {option} is none"
                );
            }
            if words[0] == "reproduce" {
                let known = run(&place, &["reproduce", "?"]).stderr;
                assert!(
                    words[1..].iter().all(|study| study.starts_with('[') || known.contains(study)),
                    "{page}: {code}"
                );
            }
        }
    }
}

#[test]
fn what_the_pages_quote_of_the_first_table_is_in_it() {
    let table = text("experiments/first-light.txt");
    for (page, begins) in [("README.md", "pipetest\n"), ("docs/reports.md", "pipetest: ")] {
        for line in block(&text(page), begins).lines() {
            assert!(table.lines().any(|known| known.trim_end() == line.trim_end()), "{page}: not in the table: {line}");
        }
    }
}

#[test]
fn the_example_of_lines_is_what_they_look_like() {
    // The figures depend on prices, which change; which figures there are, and in which columns, must not.
    let shape = |line: &str| {
        let number = |word: &str| word.trim_end_matches(';').parse::<f64>().is_ok();
        line.split_whitespace().map(|word| if number(word) { "0" } else { word }).collect::<Vec<_>>().join(" ")
    };
    let page = text("docs/lines.md");
    let command = commands(&page).into_iter().find(|command| command[0] == "lines").expect("a command");
    let printed = run_well(&place_of_lines(&page), &command.iter().map(String::as_str).collect::<Vec<_>>()).stdout;
    let printed: Vec<String> = printed.lines().map(shape).collect();
    let quoted = blocks(&page).into_iter().find(|(_, text)| text.contains("lines were touched")).expect("an example").1;
    for line in quoted.lines().filter(|line| *line != "...") {
        assert!(printed.contains(&shape(line)), "not printed: {line}\n{}", printed.join("\n"));
    }
}

#[test]
fn the_example_of_energy_is_what_is_printed() {
    let page = text("docs/energy.md");
    let command = commands(&page).into_iter().find(|command| command[0] == "run").expect("a command");
    let place = folder("documented-energy");
    let printed = run_well(&place, &command.iter().map(String::as_str).collect::<Vec<_>>()).stdout;
    let there = printed.split("\n\n").find(|part| part.starts_with("energy, ")).expect("energies").trim_end();
    assert_eq!(block(&page, "energy, ").trim_end(), there);
}

fn place_of_lines(page: &str) -> PathBuf {
    let place = folder("documented-lines");
    fs::write(place.join("group.txt"), block(page, "group /bench")).unwrap();
    place
}

#[test]
fn examples_of_files_are_taken() {
    let place = folder("documented-files");
    let experiments = text("docs/experiments.md");
    let [workload, arm, timeline] =
        ["[[workload]]\nname = \"hack", "[[arm]]", "[[timeline]]"].map(|at| block(&experiments, at));
    let other = "[[arm]]\nname = \"plain\"\nkernel = \"v4.16\"\n";
    let whole =
        format!("machine = \"core-i7-3770\"\n{}{arm}{other}", workload.replace("100", "2").replace(", 4, 7", ""));
    fs::write(place.join("a.toml"), whole).unwrap();
    run_well(&place, &["compare", "a.toml", "--iterations", "1"]);
    // The same arm as a one-line option.
    let option = experiments.split("`--arm ").nth(1).and_then(|it| it.split('`').next()).expect("an option");
    run_well(&place, &["run", "a.toml", "--iterations", "1", "--arm", option]);
    let tasks = "[[workload]]\nname = \"script\"\ntasks = \"\"\"\ngroup /web: cpu.weight 100\ntask a group=/web: 70 x (run 10ms)\n\"\"\"\n";
    let timed = format!("machine = \"core-i7-3770\"\n{tasks}{arm}{other}{timeline}");
    fs::write(place.join("b.toml"), timed.replace("[\"0-1\", \"2-3\"]", "[\"0-1\", \"2,4-7\"]")).unwrap();
    run_well(&place, &["compare", "b.toml", "--iterations", "1"]);
    let arm = block(&text("docs/frequency.md"), "[[arm]]").to_string();
    fs::write(
        place.join("c.toml"),
        format!(
            "machine = \"skylake-uma-8\"\nworkload = [{{ name = \"pipetest\", batches = 1, loops = 2 }}]\n{}",
            arm.replace("cpufreq = {", "cpufreq = { driver = \"intel_pstate\",")
        ),
    )
    .unwrap();
    run_well(&place, &["run", "c.toml", "--iterations", "1"]);
    let limited = block(&text("docs/frequency.md"), "[[arm]]\nname = \"two-watts").to_string();
    let load = "workload = [{ name = \"pipetest\", batches = 1, loops = 2 }]\n";
    fs::write(place.join("d.toml"), format!("machine = \"snapdragon-845\"\n{load}{limited}")).unwrap();
    run_well(&place, &["run", "d.toml", "--iterations", "1"]);
    let machines = text("docs/machines.md");
    for begins in ["name = \"my-xeon\"", "name = \"desktop-nvme\""] {
        fs::write(place.join("m.toml"), block(&machines, begins)).unwrap();
        run_well(&place, &["machines", "show", "m.toml"]);
    }
    let scripts = text("docs/scripts.md");
    for begins in ["group /web", "memory heap"] {
        fs::write(place.join("s.txt"), block(&scripts, begins).replace("10s", "5ms")).unwrap();
        run_well(
            &place,
            &["run", "--machine", "xeon-e5-2670v3-2s", "--workload", "script:file=s.txt", "--arm", "v6.12"],
        );
    }
}

#[test]
fn the_readme_counts_what_ships() {
    let place = folder("documented-counts");
    let listed = |what: &str| run_well(&place, &[what, "list"]).stdout.lines().count();
    let readme = text("README.md");
    // Files of tasks, scripts and recorded traces do not count as benchmarks.
    let counts = [("Twenty-one ship", listed("machines"), 21), ("twenty-five benchmarks", listed("workloads") - 3, 25)];
    for (words, there, said) in counts {
        assert!(readme.contains(words) && there == said, "README says {words:?}, and there are {there}");
    }
}

/// For each table of a study with a published column, as the line below the table says: the rows, and how many of them
/// are within 25% and within 10% of what was published.
fn near(study: &str) -> Vec<[u32; 3]> {
    let printed = text(&format!("docs/studies/{study}.txt"));
    let sums = printed.lines().filter(|line| line.starts_with("within 10%: "));
    let numbers = |line: &str| line.split([' ', ';']).filter_map(|word| word.parse().ok()).collect::<Vec<u32>>();
    sums.map(|line| match numbers(line)[..] {
        [tenth, rows, quarter] => [rows, quarter, tenth],
        _ => panic!("{study}: {line:?} has not three numbers"),
    })
    .collect()
}

#[test]
fn how_near_the_levels_are_is_what_the_tables_say() {
    let (server, hackbench, desktop) = (near("schedstats"), near("schedstats-hackbench"), near("schedstats-8core"));
    let first_study = [
        ("netperf-tcp", server[0]),
        ("tbench4, E5-2670 v3", server[1]),
        ("hackbench-pipes", hackbench[0]),
        ("pipetest", server[2]),
        ("tbench4, i7-3770", desktop[0]),
    ];
    let page = text("docs/cost-model.md");
    for (table, [rows, quarter, tenth]) in
        first_study.into_iter().chain([("dbench-xfs, skylake-uma-8", near("recent-used-cpu")[0])])
    {
        let line = format!("| {table} | {rows} | {quarter} | {tenth} |");
        assert!(page.contains(&line), "docs/cost-model.md has not {line:?}");
    }
    let [rows, quarter, tenth] = [0, 1, 2].map(|column| first_study.iter().map(|(_, sums)| sums[column]).sum::<u32>());
    let of = if quarter == rows { "all".to_string() } else { format!("{quarter} of") };
    let sentence = format!("{of} {rows} are within 25% of the before column and {tenth} within 10%");
    assert!(text("docs/studies.md").contains(&sentence), "docs/studies.md has not {sentence:?}");
}

#[test]
fn schedstats_cost_pipetest_what_the_given_pair_says() {
    let tables = text("docs/studies/schedstats.txt");
    let row =
        tables.lines().find(|line| line.starts_with("Mean ") && line.contains(" Time ")).expect("pipetest's mean");
    let figures = || row.split([' ', '(', '%', ')']).filter_map(|word| word.parse::<f64>().ok());
    let (before, gain) = (figures().next().expect("us per loop"), figures().nth(3).expect("percent"));
    // 4.48 and 4.39 us, each rounded to a hundredth.
    let cost = before * gain / 100.0;
    assert!((0.08..=0.10).contains(&cost), "{cost} us of a loop: {row}");
}

/// A figure of a machine file, divided by `divisor`: the first of that key after the line `section`.
fn figure(machine: &str, section: &str, key: &str, divisor: f64) -> String {
    let file = text(&format!("machines/{machine}.toml"));
    let mut lines = file.lines().skip_while(|line| *line != section);
    let value = lines.find_map(|line| line.strip_prefix(&format!("{key} = {{ value = ")));
    let value =
        value.and_then(|rest| rest.split_once(',')).unwrap_or_else(|| panic!("{machine}: no {section} {key}")).0;
    (value.parse::<f64>().expect("a number") / divisor).to_string()
}

#[test]
fn fitted_prices_are_those_of_the_machine_files() {
    let page = text("docs/cost-model.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let (server, desktop, client) = ("xeon-e5-2670v3-2s", "core-i7-3770", "skylake-uma-8");
    let (cpi, c1) = ("[cycles_per_instruction]", "name = \"C1\"");
    for (before, (machine, section, key, divisor), after) in [
        ("`line.read_stall` (", (server, "[line]", "read_stall", 1.0), ")"),
        ("`line.write_stall` (", (server, "[line]", "write_stall", 1.0), ")"),
        ("of the idle loop takes (", (server, cpi, "paths", 1.0), " cycles)"),
        ("of the idle loop takes (", (server, cpi, "idle_loop", 1.0), " cycles)"),
        ("of the rest of the kernel (", (server, cpi, "os", 1.0), ")"),
        ("of net/ (", (server, cpi, "net", 1.0), ")"),
        ("`smt.speed` (", (server, "[smt]", "speed", 1.0), ")"),
        ("the way out of C1 (", (server, c1, "wake", 1.0), " ns)"),
        ("`smt.speed` (", (desktop, "[smt]", "speed", 1.0), ")"),
        ("the way out of C1 (", (desktop, c1, "wake", 1.0), " ns)"),
        ("one factor for `[fs]` (to ", (client, cpi, "fs", 1.0), ")"),
        ("the disk's write and flush (", (client, "[disk]", "write", 1.0), " and "),
        (" and ", (client, "[disk]", "flush", 1.0), " us)"),
        ("idle states (C6 to ", (client, "name = \"C6\"", "wake", 1000.0), " us)"),
        ("that hardware P-states aim at (", (client, "[frequency]", "hwp_target", 1.0), ")"),
        ("how long a history they look at (", (client, "[frequency]", "hwp_history", 1.0), " ms)"),
        ("a line's way across the crossbar (", ("ivybridge-ex-16s", "[line]", "remote_2", 1.0), " ns,"),
    ] {
        let words = format!("{before}{}{after}", figure(machine, section, key, divisor));
        assert!(page.contains(&words), "docs/cost-model.md has not {words:?}, as machines/{machine}.toml");
    }
}

#[test]
fn machine_files_quote_what_was_fitted_on_skylake() {
    let target = figure("skylake-uma-8", "[frequency]", "hwp_target", 1.0);
    let files = fs::read_dir(root().join("machines")).expect("the machine files").map(|entry| entry.expect("an entry"));
    let mut quoted = 0;
    for path in files.map(|file| file.path()).filter(|path| path.is_file()) {
        let file = fs::read_to_string(&path).expect("a machine file");
        for (before, _) in file.match_indices(" was fitted on a Skylake client").map(|(at, _)| file.split_at(at)) {
            assert_eq!(before.rsplit(' ').next(), Some(target.as_str()), "{}", path.display());
            quoted += 1;
        }
    }
    assert!(quoted >= 4, "{quoted}");
}
