//! The task groups of a script: lines that create them, and tasks that start in them or enter them.

use super::parse::excerpt;
use super::reader::Reader;
use super::{Group, GroupLine, Script, ScriptError};
use machine::description::nearest_name;
use sched::core::cgroup::GroupFile;

/// `PATH: FILE TEXT; FILE TEXT`
pub(super) fn group(reader: &mut Reader, script: &mut Script) -> Result<(), ScriptError> {
    let path = reader.word();
    let Some(place) = made_group(reader, path, script)? else {
        return Err(reader.wrong_at(path, "`/`".to_string(), "another group than the root, whose files are fixed"));
    };
    if !reader.rest.starts_with(':') {
        return Err(reader.wrong(excerpt(reader.rest), "a colon, and the group's files after it"));
    }
    reader.skip(1);
    while !reader.rest.is_empty() {
        let name = reader.word();
        let column = reader.column(name);
        let Some(file) = GroupFile::ALL.iter().copied().find(|file| file.name() == name) else {
            let names = GroupFile::ALL.iter().map(|file| file.name());
            let nearest = nearest_name(name, names.clone());
            let expected = match nearest {
                Some(nearest) => format!("`{nearest}`, perhaps"),
                None => format!("a file of a group: {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(reader.wrong_at(name, format!("`{name}`"), &expected));
        };
        let end = reader.rest.find(';').unwrap_or(reader.rest.len());
        let text = reader.rest[..end].trim().to_string();
        if text.is_empty() {
            return Err(reader.wrong(format!("nothing for {name}"), "the text to write into it"));
        }
        reader.skip(end + usize::from(end < reader.rest.len()));
        script.groups[place as usize].files.push(GroupLine { file, text, line: reader.line, column });
    }
    Ok(())
}

/// The index of a group among the script's; a new group is added. `None` for the root.
pub(super) fn named_group(reader: &Reader, path: &str, script: &mut Script) -> Result<Option<u32>, ScriptError> {
    if path == "/" {
        return Ok(None);
    }
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !path.strip_prefix('/').is_some_and(|path| path.split('/').all(part)) {
        return Err(reader.wrong_at(path, format!("`{path}`"), "a group's path, such as /above/below"));
    }
    let place = script.groups.iter().position(|group| group.path == path).unwrap_or_else(|| {
        let (line, column) = (reader.line, reader.column(path));
        script.groups.push(Group { path: path.to_string(), files: Vec::new(), made: false, line, column });
        script.groups.len() - 1
    });
    Ok(Some(place as u32))
}

/// The same for a group that is created where it is named, as by mkdir -p: by its own line, or by a task that starts in
/// it.
pub(super) fn made_group(reader: &Reader, path: &str, script: &mut Script) -> Result<Option<u32>, ScriptError> {
    let place = named_group(reader, path, script)?;
    if let Some(place) = place {
        script.groups[place as usize].made = true;
    }
    Ok(place)
}

/// A task can only enter a group that exists: opening a file of any other group fails. Creating a group creates its
/// ancestors too.
pub(super) fn all_are_made(script: &Script) -> Result<(), ScriptError> {
    let made = || script.groups.iter().filter(|group| group.made).map(|group| group.path.as_str());
    let above = |path: &str, below: &str| below.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    match script.groups.iter().find(|group| !group.made && !made().any(|below| above(&group.path, below))) {
        None => Ok(()),
        Some(group) => {
            let nearest = nearest_name(&group.path, made()).map(|path| format!("`{path}`, perhaps; or "));
            Err(ScriptError {
                line: group.line,
                column: group.column,
                found: format!("the group `{}`, which nobody makes: ENOENT (no such file or directory)", group.path),
                expected: nearest.unwrap_or_default()
                    + "a group that a line `group /PATH: ...` or a task's group=/PATH makes",
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Step;
    use super::*;

    #[test]
    fn groups_are_named_by_lines_and_by_tasks() {
        let text = "group /a/b: cpu.max 50000 100000; cpu.weight 300\ntask x group=/c: enter /a/b; enter /; setsid; autogroup -5";
        let script = Script::parse(text, 1).unwrap();
        let paths: Vec<&str> = script.groups.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/a/b", "/c"]);
        let files: Vec<_> =
            script.groups[0].files.iter().map(|line| (line.file, line.text.as_str(), line.column)).collect();
        assert_eq!(files, [(GroupFile::Max, "50000 100000", 13), (GroupFile::Weight, "300", 35)]);
        let steps = [Step::Enter(Some(0)), Step::Enter(None), Step::Setsid, Step::Autogroup(-5)];
        assert_eq!(script.tasks[0].steps[..], steps);
    }

    #[test]
    fn what_is_entered_must_be_there() {
        let parsed = |text: &str| Script::parse(text, 1).map(|_| ()).map_err(|error| error.to_string());
        // The group is created later in the text, by a task that starts in it, or because a group below it is.
        assert_eq!(parsed("task a: enter /web\ngroup /web: cpu.weight 300"), Ok(()));
        assert_eq!(parsed("task a: enter /web\ntask b group=/web: run 1ms"), Ok(()));
        assert_eq!(parsed("task a group=/web/js: enter /web"), Ok(()));
        let refused = parsed("group /web: cpu.weight 300\ntask a: run 1ms; enter /wed").unwrap_err();
        let found = "2:24: found the group `/wed`, which nobody makes: ENOENT (no such file or directory); expected `/web`, perhaps";
        assert!(refused.starts_with(found), "{refused}");
        assert!(parsed("task a group=/website: enter /web").unwrap_err().starts_with("1:30: found the group `/web`"));
        assert!(
            parsed("task a: enter /typo")
                .unwrap_err()
                .ends_with("expected a group that a line `group /PATH: ...` or a task's group=/PATH makes")
        );
    }
}
