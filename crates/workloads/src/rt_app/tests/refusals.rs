//! Files that are refused: each case gives the position, what was found, and what would be right.

use super::*;

/// A file in which `¦` stands before the place that the message must name; then words of both parts of the message.
type Case<'a> = (&'a str, &'a str, &'a str);

fn all_refused(cases: &[Case]) {
    for (marked, found, right) in cases {
        let (before, after) = marked.split_once('¦').unwrap_or_else(|| panic!("no mark in {marked}"));
        let line = before.split('\n').count() as u32;
        let column = before.rsplit('\n').next().map_or(0, |start| start.chars().count()) as u32 + 1;
        let text = format!("{before}{after}");
        let error = parse(&text, "f", Duplicates::Workgen).err().unwrap_or_else(|| panic!("accepted: {text}"));
        let fits = error.position == at(line, column) && error.found.contains(found) && error.right.contains(right);
        assert!(fits, "\n{marked}\ngave {error}\nnot {line}:{column}: {found}; {right}");
    }
}

/// The same for the contents of a task named `t`.
fn all_refused_in_task(cases: &[Case]) {
    for (contents, found, right) in cases {
        all_refused(&[(&format!("{{\"tasks\": {{\"t\": {{{contents}}}}}}}"), found, right)]);
    }
}

/// The same for the contents of `global`.
fn all_refused_in_global(cases: &[Case]) {
    for (contents, found, right) in cases {
        all_refused(&[(
            &format!("{{\"tasks\": {{\"t\": {{\"run\": 1}}}}, \"global\": {{{contents}}}}}"),
            found,
            right,
        )]);
    }
}

#[test]
fn text_that_is_no_json() {
    all_refused(&[
        ("¦", "the file is empty", "tasks"),
        (" /* only this */ ¦", "the file is empty", "tasks"),
        ("¦[]", "the file begins with '['", "an object"),
        ("¦\u{feff}{}", "a byte order mark", "an object"),
        (r#"{"tasks": {¦"#, "the file ends inside the object that begins at line 1, column 11", "cut off"),
        (r#"{"tasks": tr¦"#, "the file ends inside the object that begins at line 1, column 1", "cut off"),
        (r#"{"tasks": ¦/* {}}"#, "this comment has no end", "close it with */"),
        (r#"{"tasks": ¦/ {}}"#, "a '/' that begins no comment", "/*"),
        (r#"{¦tasks: {}}"#, "a name without quotes: tasks", "names stand in quotes"),
        (r#"{"tasks" ¦{}}"#, "expected colon", "a colon"),
        (r#"{"tasks": {}¦ "global": {}}"#, "expected comma", "a comma"),
        (r#"{"tasks": {}, ¦, }"#, "unexpected token", "names stand in quotes"),
        (r#"{"tasks": [¦}"#, "'}' stands inside the array that begins at line 1, column 11", "close it with ']' first"),
        (r#"{"tasks": ¦yes}"#, "the word yes means nothing", "quotes"),
        (r#"{"tasks": ¦}"#, "unexpected close brace", "a value comes first"),
        (r#"{"tasks": ¦0x10}"#, "hexadecimal", "JSON"),
        (r#"{"tasks": ¦+1}"#, "plus", "JSON"),
        ("{\"tasks\":\n ¦# 1\n}", "'#' stands outside a string", "brackets"),
        (r#"{"a¦\x41": 1}"#, "\\ before 'x'", "escapes"),
        ("{\"größe\":¦\u{a0}1}", "the character U+00A0", "brackets"),
        (&format!("{{\"tasks\": {}¦[", "[".repeat(31)), "deeper than 32", "no deeper"),
    ]);
    let error = parse_bytes(b"{\"a\":\n \"\xff\xfe\"}", "f", Duplicates::Workgen).expect_err("it is not text");
    assert_eq!((error.position, error.right.as_str()), (at(2, 3), "save the file as UTF-8"));
}

#[test]
fn unknown_names_come_with_the_nearest_valid_one() {
    all_refused(&[
        (r#"{¦"task": {}}"#, "\"task\" means nothing at the top level", "did you mean \"tasks\"?"),
        (
            r#"{"tasks": {"t": {"run": 1}}, "resources": {"m": {"type": ¦"mutx"}}}"#,
            "\"mutx\"",
            "did you mean \"mutex\"?",
        ),
        (r#"{"tasks": {"t": {"run": 1}}, "resources": {"m": ¦{}}}"#, "no \"type\"", "mutex"),
    ]);
    all_refused_in_global(&[
        (r#"¦"durations": 1"#, "\"durations\" means nothing in \"global\"", "did you mean \"duration\"?"),
        (r#""default_policy": ¦"SCHED_NORMAL""#, "\"SCHED_NORMAL\"", "valid here: \"SCHED_OTHER\""),
    ]);
    all_refused_in_task(&[
        (r#"¦"slep": 1, "run": 1"#, "\"slep\" means nothing in a task", "did you mean \"sleep\"?"),
        (r#"¦"Run": 1"#, "\"Run\"", "did you mean \"run\"?"),
        (r#"¦"instances": 2, "run": 1"#, "\"instances\"", "did you mean \"instance\"?"),
        (r#""phases": {"p": {¦"loops": 1, "run": 1}}"#, "in a phase", "did you mean \"loop\"?"),
        (r#""phases": {"p": {¦"instance": 1, "run": 1}}"#, "belongs to a task", "beside \"phases\""),
        (r#""phases": {"p": {¦"period": 1, "run": 1}}"#, "\"period\"", "\"dl-period\""),
        (r#"¦"run": 1, "phases": {"p": {"run": 1}}"#, "would never run", "into one of the phases"),
        (r#""timer": {"ref": "a", ¦"periods": 1}"#, "\"periods\"", "\"period\""),
        (r#""timer": {"ref": "a", "period": 1, "mode": ¦"absolut"}"#, "\"absolut\"", "did you mean \"absolute\"?"),
        (r#""policy": ¦"SCHED_FIF0", "run": 1"#, "\"SCHED_FIF0\"", "did you mean \"SCHED_FIFO\"?"),
        (r#""run": 1, ¦"resume": "u""#, "\"resume\" of \"u\"", "did you mean \"t\"?"),
        (r#""run": 1, "fork": ¦"tt""#, "\"tt\"", "no task is called that; did you mean \"t\"?"),
    ]);
}

#[test]
fn wrong_types() {
    let number = "it should be a whole number of microseconds";
    all_refused(&[
        (r#"{"tasks": ¦[]}"#, "\"tasks\" is an array", "an object of tasks"),
        (r#"{"tasks": ¦{}}"#, "\"tasks\" is empty", "at least one task"),
        (r#"{"tasks": {¦"a\u001b[31m": {"run": 1}}}"#, "\"a\\u{1b}[31m\" has a control character", "plain text"),
        (r#"¦{"global": {}}"#, "no \"tasks\"", "give \"tasks\""),
        (r#"{"tasks": {"t": ¦5}}"#, "\"t\" is 5", "an object"),
        (r#"{"tasks": {¦"t": {"priority": 3}}}"#, "\"t\" has no event", "at least one"),
    ]);
    all_refused_in_task(&[
        (r#""run": ¦"5""#, "\"run\" is \"5\"", number),
        (r#""run": ¦1.5"#, "\"run\" is 1.5", number),
        (r#""run": ¦1e3"#, "\"run\" is 1e3", number),
        (r#""run": ¦null"#, "\"run\" is null", number),
        (r#""run": ¦NaN"#, "\"run\" is NaN", number),
        (r#""run": ¦true"#, "\"run\" is true", number),
        (r#""lock_pages": ¦true"#, "\"lock_pages\" is true", "names that begin with \"lock\" are \"lock\" events"),
        (r#""timer": ¦5"#, "\"timer\" is 5", "an object, such as"),
        (r#""timer": ¦{"period": 5}"#, "lacks \"ref\"", "give \"ref\""),
        (r#""wait": ¦{"ref": "c"}"#, "lacks \"mutex\"", "give \"mutex\""),
        (r#""phases": ¦[], "loop": 1"#, "\"phases\" is an array", "an object of phases"),
        (r#""phases": ¦{}"#, "\"phases\" is empty", "at least one phase"),
        (r#""phases": {¦"p": {"loop": 2}}"#, "\"p\" has no event", "\"run\""),
        (r#""cpus": ¦3, "run": 1"#, "\"cpus\" is 3", "such as [0, 2, 3]"),
        (r#""cpus": ¦[], "run": 1"#, "an empty array", "leave it out for all"),
        (r#""cpus": [0, ¦"1"], "run": 1"#, "\"cpus\" is \"1\"", "CPU numbers"),
    ]);
    all_refused_in_global(&[
        (r#""pi_enabled": ¦1"#, "\"pi_enabled\" is 1", "true or false"),
        (r#""calibration": ¦"cpu0""#, "\"cpu0\"", "such as \"CPU0\""),
        (r#""ftrace": ¦"main,tsk""#, "\"main,tsk\"", "did you mean \"task\"?"),
        (r#""log_size": ¦"fil""#, "\"fil\"", "did you mean \"file\"?"),
    ]);
}

#[test]
fn numbers_out_of_range() {
    let time = "1 to 2147483647";
    all_refused_in_task(&[
        (r#""run": ¦0"#, "\"run\" is 0", time),
        (r#""run": ¦-5"#, "\"run\" is -5", time),
        (r#""runtime": ¦2147483648"#, "2147483648", time),
        (r#""run": 1, "sleep": ¦-1"#, "\"sleep\" is -1", "0 to 2147483647"),
        (r#""run": ¦99999999999999999999999999"#, "99999999999999999999999999", time),
        (r#""timer": {"ref": "a", "period": ¦-1}"#, "\"period\" is -1", "0 to"),
        (r#""delay": ¦-1, "run": 1"#, "\"delay\" is -1", "0 to"),
        (r#""mem": ¦0"#, "\"mem\" is 0", "bytes"),
        (r#""loop": ¦0, "run": 1"#, "loop is 0", "-1 (for ever)"),
        (r#""loop": ¦-2, "run": 1"#, "\"loop\" is -2", "-1 (for ever)"),
        (r#""instance": ¦-1, "run": 1"#, "\"instance\" is -1", "0 to 100000"),
        (r#""instance": ¦100001, "run": 1"#, "100001", "0 to 100000"),
        (r#""cpus": [¦8192], "run": 1"#, "8192", "0 to 8191"),
        (r#""util_min": ¦1025, "run": 1"#, "1025", "0 to 1024"),
        (r#""util_min": 600, "util_max": ¦500, "run": 1"#, "util_min is 600 and util_max is 500", "not be above"),
        (r#""priority": ¦20, "run": 1"#, "\"priority\" is 20 under SCHED_OTHER", "-20 to 19"),
        (r#""priority": ¦-21, "run": 1"#, "\"priority\" is -21", "-20 to 99"),
        (r#""policy": "SCHED_RR", "priority": ¦0, "run": 1"#, "under SCHED_RR", "1 to 99"),
        (r#""memrun": {"type": "chase", "size": ¦100, "count": 1}"#, "a stride of 64", "two strides"),
    ]);
    all_refused_in_global(&[
        (r#""duration": ¦0"#, "\"duration\" is 0", "-1"),
        (r#""duration": ¦86401"#, "86401", "86400"),
    ]);
    let many = r#"{"tasks": {"a": {"run": 1, "instance": 60000}, ¦"b": {"run": 1, "instance": 60000}}}"#;
    all_refused(&[
        (r#"{"tasks": {¦"t": {"run": 1, "instance": 0}}}"#, "nothing starts", "\"instance\": 1"),
        (many, "120000", "100000"),
    ]);
}

#[test]
fn deadlines_groups_and_properties_that_contradict_each_other() {
    let dl = |contents: &str, found: &str, right: &str| {
        all_refused_in_task(&[(&contents.replace("DL", r#""policy": "SCHED_DEADLINE", "dl-runtime""#), found, right)]);
    };
    dl(r#"DL: ¦1, "run": 1"#, "1 us", "2 us or more");
    dl(r#"DL: 9, "dl-period": ¦8, "run": 1"#, "deadline of 8 us", "runtime <= deadline");
    dl(r#"DL: 5, "dl-deadline": 9, "dl-period": ¦8, "run": 1"#, "period of 8 us", "deadline <= period");
    dl(r#"DL: 5, "period": ¦8, "run": 1"#, "beside a \"dl-\" name", "\"dl-period\"");
    dl(r#"DL: 5, "util_min": ¦8, "run": 1"#, "a clamp", "leave util_min");
    dl(r#"DL: 5, "phases": {"p": {"util_min": ¦8, "run": 1}}"#, "a clamp", "leave util_min");
    all_refused_in_task(&[
        (r#""policy": ¦"SCHED_DEADLINE", "run": 1"#, "without \"dl-runtime\"", "give \"dl-runtime\""),
        (r#""policy": "SCHED_FIFO", "taskgroup": ¦"/a", "run": 1"#, "a task group under SCHED_FIFO", "SCHED_OTHER"),
        (r#""taskgroup": "/a", "phases": {"p": {"policy": ¦"SCHED_RR", "run": 1}}"#, "under SCHED_RR", "SCHED_OTHER"),
        (r#""taskgroup": ¦"a/b", "run": 1"#, "\"a/b\"", "begin with \"/\", such as \"/a/b\""),
        (r#""taskgroup": ¦"/a//b", "run": 1"#, "\"/a//b\"", "one \"/\" before each"),
        (r#""taskgroup": ¦"/../b", "run": 1"#, "\"/../b\"", "one \"/\" before each"),
        (r#""run": 1, "loop": 2, ¦"loop": 3"#, "\"loop\" is given twice, first at line 1, column 28", "keep one"),
    ]);
    let groups: String = (1..=32).map(|i| format!("\"p{i}\": {{\"run\": 1, \"taskgroup\": \"/g{i}\"}}, ")).collect();
    let contents = format!("\"phases\": {{{groups}\"last\": {{\"run\": 1, \"taskgroup\": ¦\"/g33\"}}}}");
    all_refused_in_task(&[(&contents, "task group number 33", "at most 32")]);
}

#[test]
fn buffers_that_disagree_and_barriers_in_forked_tasks() {
    let reads = r#""memrun": {"type": "read", "size": 64, "count": 1, "ref": "b"},
        ¦"memrun": {"type": "read", "size": 65, "count": 1, "ref": "b"}"#;
    all_refused_in_task(&[(reads, "shares its buffer", "the other is at line 1, column 18")]);
    let forked = r#"{"tasks": {"a": {"run": 1, "fork": "b"}, "b": {"instance": 0, "run": 1, ¦"barrier": "x"}}}"#;
    all_refused(&[(forked, "a barrier in \"b\", which is forked at line 1, column 28", "forked tasks cannot")]);
}

#[test]
fn endless_loops_at_one_instant() {
    let why = "repeats endlessly at one instant: none of its events takes time";
    let right = "give it a \"run\"";
    all_refused(&[
        (r#"{"tasks": {¦"t": {"yield": ""}}}"#, why, right),
        (r#"{"tasks": {¦"t": {"loop": -1, "lock": "m", "unlock": "m"}}}"#, why, right),
        (r#"{"tasks": {¦"t": {"loop": 2000000, "sem_post": "s"}}}"#, why, right),
        (r#"{"tasks": {¦"t": {"sleep": 0}}}"#, why, right),
        (r#"{"tasks": {"t": {"phases": {"a": {"run": 1}, ¦"b": {"loop": -1, "signal": "c"}}}}}"#, why, right),
        (
            r#"{"tasks": {¦"a": {"resume": "b", "suspend": ""}, "b": {"resume": "a", "suspend": ""}}}"#,
            "nor do those that wake it",
            right,
        ),
        (
            r#"{"tasks": {"a": {"run": 1, "sem_post": "s"}, ¦"b": {"sem_wait": "s", "sem_post": "s"}}}"#,
            "\"b\" repeats",
            right,
        ),
        (r#"{"tasks": {¦"a": {"barrier": "x"}, "b": {"barrier": "x"}}}"#, "nor do those", right),
    ]);
    for paced in [
        r#"{"tasks": {"a": {"run": 1, "sem_post": "s"}, "b": {"sem_wait": "s", "sem_post": "r"},
            "c": {"sem_wait": "r"}}}"#,
        r#"{"tasks": {"a": {"run": 1, "resume": "b", "suspend": ""}, "b": {"resume": "a", "suspend": ""}}}"#,
        r#"{"tasks": {"a": {"run": 1, "barrier": "x"}, "b": {"barrier": "x"}}}"#,
        r#"{"tasks": {"a": {"loop": 1000000, "yield": ""}}}"#,
        r#"{"tasks": {"a": {"loop": 5, "phases": {"p": {"loop": 9, "yield": ""}}}}}"#,
        r#"{"tasks": {"a": {"memrun": {"type": "read", "size": 1, "count": 1}}}}"#,
    ] {
        parse(paced, "f", Duplicates::Workgen).unwrap_or_else(|error| panic!("{error}\n{paced}"));
    }
}
