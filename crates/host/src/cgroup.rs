//! Which cgroups this process is in.

/// The folders of a cgroup that `/proc/self/cgroup` names, from its own up to the root's, below `mount`: that of
/// version 2, or of version 1 with `controller`. A container that sees only its own part of the tree sees the last of
/// these folders.
pub fn folders(text: &str, controller: Option<&str>, mount: &str) -> Vec<String> {
    let own = text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = match controller {
            Some(wanted) => controllers.split(',').any(|it| it == wanted),
            None => controllers.is_empty(),
        };
        is_it.then_some(path)
    });
    let mut folders = vec![format!("{mount}{}", own.unwrap_or("/").trim_end_matches('/'))];
    while let Some((above, _)) = folders.last().and_then(|last| last.rsplit_once('/')) {
        if above.len() < mount.len() {
            break;
        }
        folders.push(above.to_string());
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_lies_below_others() {
        let text = "4:memory,hugetlb:/a/b\n3:cpu:/\n0::/c\n";
        assert_eq!(folders(text, Some("memory"), "/m"), ["/m/a/b", "/m/a", "/m"]);
        assert_eq!(folders(text, None, "/sys/fs/cgroup"), ["/sys/fs/cgroup/c", "/sys/fs/cgroup"]);
        assert_eq!(folders(text, Some("pids"), "/m"), ["/m"]);
        assert_eq!(folders("", None, "/m"), ["/m"]);
    }
}
