//! Links between this project's pages: each must lead to a file that exists, and to a heading in it.

use std::fs;
use std::path::{Path, PathBuf};

/// Adds a fault for each link of README, ARCHITECTURE and docs/ that leads nowhere.
pub fn check(root: &Path, faults: &mut Vec<String>) -> Result<(), String> {
    let mut pages = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    for folder in ["docs", "docs/decisions", "docs/studies"] {
        let entries = fs::read_dir(root.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
        pages.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
    }
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    for page in pages {
        let text = read(&page)?;
        let name = page.strip_prefix(root).unwrap_or(&page).display().to_string();
        for link in links(&text) {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target: PathBuf = if path.is_empty() { page.clone() } else { page.with_file_name(path) };
            if !target.exists() {
                faults.push(format!("{name}: found a link to {link}, where nothing is"));
            } else if !heading.is_empty() && !headings(&read(&target)?).iter().any(|known| known == heading) {
                faults.push(format!("{name}: found a link to {link}, a page that has no such heading"));
            }
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text without code and code blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2)).collect::<Vec<_>>().join("`")
}

/// The targets of a page's links that stay in this project.
fn links(text: &str) -> Vec<String> {
    // A link's text may be code; what follows it is not.
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://")).map(str::to_string).collect()
}

/// The names of a page's headings in links, as code forges make them.
fn headings(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2).collect::<String>();
    let lines =
        outside.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim().to_string()));
    let letter = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    };
    lines.map(|heading| heading.to_lowercase().chars().filter_map(letter).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_those_of_the_prose() {
        let text = "See [`x`](a.md#one), [y](https://example.org) and `[no](b.md)`.\n```\n[no](c.md)\n```\n[z](#two)";
        assert_eq!(links(text), ["a.md#one", "#two"]);
        assert_eq!(headings("# One, two\n```\n# no\n```\n## A `b` c-d"), ["one-two", "a-b-c-d"]);
    }

    #[test]
    fn a_link_to_nothing_is_a_fault() {
        let root = std::env::temp_dir().join(format!("xtask-links-{}", std::process::id()));
        for folder in ["docs/decisions", "docs/studies"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("README.md"), "[a](docs/a.md#here) [b](docs/b.md) [c](docs/a.md#there)").unwrap();
        fs::write(root.join("ARCHITECTURE.md"), "").unwrap();
        fs::write(root.join("docs/a.md"), "## Here").unwrap();
        let mut faults = Vec::new();
        check(&root, &mut faults).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].contains("docs/b.md, where nothing is") && faults[1].contains("no such heading"),
            "{faults:?}"
        );
    }
}
