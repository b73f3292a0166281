//! What is refused: each case with its place, what was found and what would be right.

use super::*;

struct Case {
    text: String,
    position: Position,
    found: &'static str,
    right: &'static str,
}

/// A file of one line; `column` counts from the given text on.
fn case(text: &str, column: u32, found: &'static str, right: &'static str) -> Case {
    Case { text: text.into(), position: at(1, column), found, right }
}

/// The contents of a task; `column` counts within them.
fn in_task(contents: &str, column: u32, found: &'static str, right: &'static str) -> Case {
    const BEFORE: &str = "{\"tasks\": {\"t\": {";
    let text = format!("{BEFORE}{contents}}}}}}}");
    Case { text, position: at(1, column + BEFORE.len() as u32), found, right }
}

fn all_refused(cases: &[Case]) {
    for Case { text, position, found, right } in cases {
        match parse(text, "f", Duplicates::Workgen) {
            Ok(_) => panic!("accepted: {text}"),
            Err(error) => {
                let fits = error.position == *position && error.found.contains(found) && error.right.contains(right);
                assert!(fits, "\n  {text}\n  gave {error}\n  not {position}: {found}; {right}");
            }
        }
    }
}

#[test]
fn text_that_is_no_json() {
    all_refused(&[
        case("", 1, "the file is empty", "tasks"),
        case(" /* only this */ ", 18, "the file is empty", "tasks"),
        case("[]", 1, "the file begins with '['", "an object"),
        case("\u{feff}{}", 1, "a byte order mark", "an object"),
        case("{\"tasks\": {", 12, "the file ends inside the object that begins at line 1, column 11", "cut off"),
        case("{\"tasks\": /* {}}", 11, "this comment has no end", "close it with */"),
        case("{\"tasks\": / {}}", 11, "a '/' that begins no comment", "/*"),
        case("{tasks: {}}", 2, "expected string", "names stand in quotes"),
        case("{\"tasks\" {}}", 10, "expected colon", "a colon"),
        case("{\"tasks\": {} \"global\": {}}", 13, "expected comma", "a comma"),
        case("{\"tasks\": {}, , }", 15, "unexpected token", "names stand in quotes"),
        case("{\"tasks\": [}", 12, "unexpected close brace", "opened last"),
        case("{\"tasks\": yes}", 11, "unexpected word", "quotes"),
        case("{\"tasks\": 0x10}", 11, "hexadecimal", "JSON"),
        case("{\"tasks\": +1}", 11, "plus", "JSON"),
        case("{\"tasks\": # 1\n}", 11, "'#' stands outside a string", "brackets"),
        case("{\"a\\x41\": 1}", 4, "\\ before 'x'", "escapes"),
        case("{\"größe\":\u{a0}1}", 10, "the character U+00A0", "brackets"),
        case(&format!("{{\"tasks\": {}", "[".repeat(40)), 42, "deeper than 32", "no deeper"),
    ]);
    let error = parse_bytes(b"{\"a\":\n \"\xff\xfe\"}", "f", Duplicates::Workgen).expect_err("it is not text");
    assert_eq!((error.position, error.right.as_str()), (at(2, 3), "save the file as UTF-8"));
}

#[test]
fn unknown_names_come_with_the_nearest_valid_one() {
    all_refused(&[
        case("{\"task\": {}}", 2, "\"task\" means nothing at the top level", "did you mean \"tasks\"?"),
        case("{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"durations\": 1}}", 42, "\"durations\"", "\"duration\""),
        case(
            "{\"tasks\": {\"t\": {\"run\": 1}}, \"resources\": {\"m\": {\"type\": \"mutx\"}}}",
            59,
            "\"mutx\"",
            "\"mutex\"",
        ),
        case("{\"tasks\": {\"t\": {\"run\": 1}}, \"resources\": {\"m\": {}}}", 49, "no \"type\"", "mutex"),
        in_task("\"slep\": 1, \"run\": 1", 1, "\"slep\" means nothing in a task", "did you mean \"sleep\"?"),
        in_task("\"Run\": 1", 1, "\"Run\"", "did you mean \"run\"?"),
        in_task("\"instances\": 2, \"run\": 1", 1, "\"instances\"", "did you mean \"instance\"?"),
        in_task("\"phases\": {\"p\": {\"loops\": 1, \"run\": 1}}", 18, "in a phase", "did you mean \"loop\"?"),
        in_task("\"phases\": {\"p\": {\"instance\": 1, \"run\": 1}}", 18, "belongs to a task", "beside \"phases\""),
        in_task("\"phases\": {\"p\": {\"period\": 1, \"run\": 1}}", 18, "\"period\"", "\"dl-period\""),
        in_task("\"run\": 1, \"phases\": {\"p\": {\"run\": 1}}", 1, "would never run", "into one of the phases"),
        in_task("\"timer\": {\"ref\": \"a\", \"periods\": 1}", 23, "\"periods\"", "\"period\""),
        in_task("\"timer\": {\"ref\": \"a\", \"period\": 1, \"mode\": \"absolut\"}", 44, "\"absolut\"", "\"absolute\""),
        in_task("\"policy\": \"SCHED_FIF0\", \"run\": 1", 11, "\"SCHED_FIF0\"", "did you mean \"SCHED_FIFO\"?"),
        in_task("\"run\": 1, \"resume\": \"u\"", 11, "\"resume\" of \"u\"", "did you mean \"t\"?"),
        in_task("\"run\": 1, \"fork\": \"tt\"", 19, "\"tt\"", "no task is called that; did you mean \"t\"?"),
    ]);
}

#[test]
fn wrong_types() {
    let number = "it should be a whole number of microseconds";
    all_refused(&[
        case("{\"tasks\": []}", 11, "\"tasks\" is an array", "an object of tasks"),
        case("{\"tasks\": {}}", 11, "\"tasks\" is empty", "at least one task"),
        case("{\"global\": {}}", 1, "no \"tasks\"", "give \"tasks\""),
        case("{\"tasks\": {\"t\": 5}}", 17, "\"t\" is 5", "an object"),
        in_task("\"run\": \"5\"", 8, "\"run\" is \"5\"", number),
        in_task("\"run\": 1.5", 8, "\"run\" is 1.5", number),
        in_task("\"run\": 1e3", 8, "\"run\" is 1e3", number),
        in_task("\"run\": null", 8, "\"run\" is null", number),
        in_task("\"run\": NaN", 8, "\"run\" is NaN", number),
        in_task("\"run\": true", 8, "\"run\" is true", number),
        in_task(
            "\"lock_pages\": true",
            15,
            "\"lock_pages\" is true",
            "names that begin with \"lock\" are \"lock\" events",
        ),
        in_task("\"timer\": 5", 10, "\"timer\" is 5", "an object, such as"),
        in_task("\"timer\": {\"period\": 5}", 10, "lacks \"ref\"", "give \"ref\""),
        in_task("\"wait\": {\"ref\": \"c\"}", 9, "lacks \"mutex\"", "give \"mutex\""),
        in_task("\"phases\": [], \"loop\": 1", 11, "\"phases\" is an array", "an object of phases"),
        in_task("\"phases\": {}", 11, "\"phases\" is empty", "at least one phase"),
        in_task("\"phases\": {\"p\": {\"loop\": 2}}", 12, "\"p\" has no event", "\"run\""),
        in_task("\"priority\": 3", 0, "", "").but(
            "{\"tasks\": {\"t\": {\"priority\": 3}}}",
            12,
            "\"t\" has no event",
            "at least one",
        ),
        in_task("\"cpus\": 3, \"run\": 1", 9, "\"cpus\" is 3", "such as [0, 2, 3]"),
        in_task("\"cpus\": [], \"run\": 1", 9, "an empty array", "leave it out for all"),
        in_task("\"cpus\": [0, \"1\"], \"run\": 1", 13, "\"cpus\" is \"1\"", "CPU numbers"),
        case(
            "{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"pi_enabled\": 1}}",
            55,
            "\"pi_enabled\" is 1",
            "true or false",
        ),
        case(
            "{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"calibration\": \"cpu0\"}}",
            56,
            "\"cpu0\"",
            "such as \"CPU0\"",
        ),
        case(
            "{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"ftrace\": \"main,tsk\"}}",
            51,
            "\"main,tsk\"",
            "did you mean \"task\"?",
        ),
        case(
            "{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"log_size\": \"fil\"}}",
            53,
            "\"fil\"",
            "did you mean \"file\"?",
        ),
    ]);
}

impl Case {
    /// Another text and place, where the position does not lie in the contents of the task.
    fn but(self, text: &str, column: u32, found: &'static str, right: &'static str) -> Case {
        case(text, column, found, right)
    }
}

#[test]
fn numbers_out_of_range() {
    let time = "1 to 2147483647";
    all_refused(&[
        in_task("\"run\": 0", 8, "\"run\" is 0", time),
        in_task("\"run\": -5", 8, "\"run\" is -5", time),
        in_task("\"runtime\": 2147483648", 12, "2147483648", time),
        in_task("\"run\": 1, \"sleep\": -1", 20, "\"sleep\" is -1", "0 to 2147483647"),
        in_task("\"run\": 99999999999999999999999999", 8, "99999999999999999999999999", time),
        in_task("\"timer\": {\"ref\": \"a\", \"period\": -1}", 33, "\"period\" is -1", "0 to"),
        in_task("\"delay\": -1, \"run\": 1", 10, "\"delay\" is -1", "0 to"),
        in_task("\"mem\": 0", 8, "\"mem\" is 0", "bytes"),
        in_task("\"loop\": 0, \"run\": 1", 9, "loop is 0", "-1 (for ever)"),
        in_task("\"loop\": -2, \"run\": 1", 9, "\"loop\" is -2", "-1 (for ever)"),
        in_task("\"instance\": -1, \"run\": 1", 13, "\"instance\" is -1", "0 to 100000"),
        in_task("\"instance\": 100001, \"run\": 1", 13, "100001", "0 to 100000"),
        in_task("\"cpus\": [8192], \"run\": 1", 10, "8192", "0 to 8191"),
        in_task("\"util_min\": 1025, \"run\": 1", 13, "1025", "0 to 1024"),
        in_task(
            "\"util_min\": 600, \"util_max\": 500, \"run\": 1",
            30,
            "util_min is 600 and util_max is 500",
            "not be above",
        ),
        in_task("\"priority\": 20, \"run\": 1", 13, "\"priority\" is 20 under SCHED_OTHER", "-20 to 19"),
        in_task("\"priority\": -21, \"run\": 1", 13, "\"priority\" is -21", "-20 to 99"),
        in_task("\"policy\": \"SCHED_RR\", \"priority\": 0, \"run\": 1", 35, "under SCHED_RR", "1 to 99"),
        in_task("\"memrun\": {\"type\": \"chase\", \"size\": 100, \"count\": 1}", 37, "a stride of 64", "two strides"),
        case("{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"duration\": 0}}", 53, "\"duration\" is 0", "-1"),
        case("{\"tasks\": {\"t\": {\"run\": 1}}, \"global\": {\"duration\": 86401}}", 53, "86401", "86400"),
        case("{\"tasks\": {\"t\": {\"run\": 1, \"instance\": 0}}}", 12, "nothing starts", "\"instance\": 1"),
        case(
            "{\"tasks\": {\"a\": {\"run\": 1, \"instance\": 60000}, \"b\": {\"run\": 1, \"instance\": 60000}}}",
            48,
            "120000",
            "100000",
        ),
    ]);
}

#[test]
fn deadlines_groups_and_properties_that_contradict_each_other() {
    let dl = "\"policy\": \"SCHED_DEADLINE\", ";
    let groups: Vec<String> = (1..=33).map(|i| format!("\"p{i}\": {{\"run\": 1, \"taskgroup\": \"/g{i}\"}}")).collect();
    let many = format!("{{\"tasks\": {{\"t\": {{\"phases\": {{\n{}\n}}}}}}}}", groups.join(",\n"));
    all_refused(&[
        in_task(&format!("{dl}\"run\": 1"), 11, "without \"dl-runtime\"", "give \"dl-runtime\""),
        in_task(&format!("{dl}\"dl-runtime\": 1, \"run\": 1"), 43, "1 us", "2 us or more"),
        in_task(
            &format!("{dl}\"dl-runtime\": 9, \"dl-period\": 8, \"run\": 1"),
            59,
            "deadline of 8 us",
            "runtime <= deadline",
        ),
        in_task(
            &format!("{dl}\"dl-runtime\": 5, \"dl-deadline\": 9, \"dl-period\": 8, \"run\": 1"),
            78,
            "period of 8 us",
            "<= period",
        ),
        in_task(
            &format!("{dl}\"dl-runtime\": 5, \"period\": 8, \"run\": 1"),
            56,
            "beside a \"dl-\" name",
            "\"dl-period\"",
        ),
        in_task(&format!("{dl}\"dl-runtime\": 5, \"util_min\": 8, \"run\": 1"), 58, "a clamp", "leave util_min"),
        in_task(
            "\"policy\": \"SCHED_FIFO\", \"taskgroup\": \"/a\", \"run\": 1",
            38,
            "a task group under SCHED_FIFO",
            "SCHED_OTHER",
        ),
        in_task("\"taskgroup\": \"a/b\", \"run\": 1", 14, "\"a/b\"", "begin with \"/\", such as \"/a/b\""),
        in_task("\"taskgroup\": \"/a//b\", \"run\": 1", 14, "\"/a//b\"", "one \"/\" before each"),
        in_task("\"taskgroup\": \"/../b\", \"run\": 1", 14, "\"/../b\"", "one \"/\" before each"),
        in_task(
            "\"run\": 1, \"loop\": 2, \"loop\": 3",
            22,
            "\"loop\" is given twice, first at line 1, column 28",
            "keep one",
        ),
        Case { text: many, position: at(34, 36), found: "task group number 33", right: "at most 32" },
    ]);
}

#[test]
fn buffers_that_disagree_and_barriers_in_forked_tasks() {
    let reads = r#""memrun": {"type": "read", "size": 64, "count": 1, "ref": "b"}, "memrun": {"type": "read", "size": 65, "count": 1, "ref": "b"}"#;
    let forked = r#"{"tasks": {"a": {"run": 1, "fork": "b"}, "b": {"instance": 0, "run": 1, "barrier": "x"}}}"#;
    all_refused(&[
        in_task(reads, 65, "shares its buffer", "the other is at line 1, column 18"),
        case(forked, 73, "a barrier in \"b\", which is forked at line 1, column 28", "forked tasks cannot"),
    ]);
}

#[test]
fn endless_loops_at_one_instant() {
    let why = "repeats endlessly at one instant: none of its events takes time";
    let right = "give it a \"run\"";
    all_refused(&[
        case("{\"tasks\": {\"t\": {\"yield\": \"\"}}}", 12, why, right),
        case("{\"tasks\": {\"t\": {\"loop\": -1, \"lock\": \"m\", \"unlock\": \"m\"}}}", 12, why, right),
        case("{\"tasks\": {\"t\": {\"loop\": 2000000, \"sem_post\": \"s\"}}}", 12, why, right),
        case("{\"tasks\": {\"t\": {\"sleep\": 0}}}", 12, why, right),
        case(
            "{\"tasks\": {\"t\": {\"phases\": {\"a\": {\"run\": 1}, \"b\": {\"loop\": -1, \"signal\": \"c\"}}}}}",
            46,
            why,
            right,
        ),
        case(
            "{\"tasks\": {\"a\": {\"resume\": \"b\", \"suspend\": \"\"}, \"b\": {\"resume\": \"a\", \"suspend\": \"\"}}}",
            12,
            "nor do those that wake it",
            right,
        ),
        case(
            "{\"tasks\": {\"a\": {\"run\": 1, \"sem_post\": \"s\"}, \"b\": {\"sem_wait\": \"s\", \"sem_post\": \"s\"}}}",
            46,
            "\"b\"",
            right,
        ),
        case("{\"tasks\": {\"a\": {\"barrier\": \"x\"}, \"b\": {\"barrier\": \"x\"}}}", 12, "nor do those", right),
    ]);
    for paced in [
        r#"{"tasks": {"a": {"run": 1, "sem_post": "s"}, "b": {"sem_wait": "s", "sem_post": "r"}, "c": {"sem_wait": "r"}}}"#,
        r#"{"tasks": {"a": {"run": 1, "resume": "b", "suspend": ""}, "b": {"resume": "a", "suspend": ""}}}"#,
        r#"{"tasks": {"a": {"run": 1, "barrier": "x"}, "b": {"barrier": "x"}}}"#,
        r#"{"tasks": {"a": {"loop": 1000000, "yield": ""}}}"#,
        r#"{"tasks": {"a": {"loop": 5, "phases": {"p": {"loop": 9, "yield": ""}}}}}"#,
        r#"{"tasks": {"a": {"memrun": {"type": "read", "size": 1, "count": 1}}}}"#,
    ] {
        parse(paced, "f", Duplicates::Workgen).unwrap_or_else(|error| panic!("{error}\n{paced}"));
    }
}
