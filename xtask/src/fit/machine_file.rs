//! Prices in the text of a machine file. They are read and written in place, so that the rest of the file stays as its
//! author wrote it.

use std::path::Path;

#[derive(Clone, Debug)]
pub struct MachineFile {
    lines: Vec<String>,
}

impl MachineFile {
    pub fn read(path: &Path) -> Result<MachineFile, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(MachineFile::parse(&text))
    }

    fn parse(text: &str) -> MachineFile {
        MachineFile { lines: text.lines().map(str::to_string).collect() }
    }

    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        std::fs::write(path, self.text()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The price's line; if there is none, the end of its section, if that exists.
    fn find(&self, name: &str) -> Result<usize, Option<usize>> {
        let (section, state, price) = parts(name);
        let mut end = None;
        let (mut inside, mut of_state) = (false, state.is_none());
        for (number, line) in self.lines.iter().enumerate() {
            if line.starts_with('[') {
                inside = line.trim() == section;
                of_state = state.is_none();
            } else if inside {
                if let Some(("name", value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                    of_state = state == Some(value.trim_matches('"'));
                }
                if of_state && line.split_once('=').is_some_and(|(key, _)| key.trim() == price) {
                    return Ok(number);
                }
            }
            if inside && of_state && !line.trim().is_empty() {
                end = Some(number + 1);
            }
        }
        Err(end)
    }

    /// A price's value.
    pub fn value(&self, name: &str) -> Option<f64> {
        let line = &self.lines[self.find(name).ok()?];
        let (_, rest) = line.split_once("value = ")?;
        rest.split([',', ' ', '}']).next()?.parse().ok()
    }

    /// Writes a price as fitted, with its source. A price that only the base has gets a line of its own.
    pub fn set(&mut self, name: &str, value: f64, unit: &str, range: (f64, f64), source: &str) -> Result<(), String> {
        let (section, state, price) = parts(name);
        let (low, high) = range;
        let line = format!(
            "{price} = {{ value = {value}, unit = \"{unit}\", range = [{low}, {high}], how = \"fitted\", source = \"{source}\" }}"
        );
        match self.find(name) {
            Ok(at) => self.lines[at] = line,
            Err(Some(end)) => self.lines.insert(end, line),
            Err(None) if state.is_some() => return Err(format!("no idle state for {name}")),
            Err(None) => self.lines.extend([String::new(), section, line]),
        }
        Ok(())
    }
}

/// The section's line, the idle state, and the key of `section.price` or `idle.STATE.wake`.
fn parts(name: &str) -> (String, Option<&str>, &str) {
    match name.split('.').collect::<Vec<_>>()[..] {
        ["idle", state, price] => ("[[idle.state]]".to_string(), Some(state), price),
        [section, price] => (format!("[{section}]"), None, price),
        _ => panic!("{name} is no price's name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
name = \"a machine\"

[smt]
speed = { value = 0.62, unit = \"ratio\", range = [0.5, 0.75], how = \"guess\", source = \"said so\" }

[[idle.state]]
name = \"C1\"
wake = { value = 600, unit = \"ns\", range = [200, 2000], how = \"guess\", source = \"so\" }

[[idle.state]]
name = \"C6\"
wake = { value = 50000, unit = \"ns\", range = [200, 90000], how = \"guess\", source = \"so\" }
";

    #[test]
    fn prices_are_found_by_section_and_idle_state() {
        let file = MachineFile::parse(TEXT);
        let found = ["smt.speed", "idle.C1.wake", "idle.C6.wake", "idle.C3.wake", "smt.other", "line.smt"];
        let values = found.map(|name| file.value(name));
        assert_eq!(values, [Some(0.62), Some(600.0), Some(50_000.0), None, None, None]);
    }

    #[test]
    fn a_price_is_written_where_it_stands_or_where_it_belongs() {
        let mut file = MachineFile::parse(TEXT);
        file.set("idle.C6.wake", 40_000.0, "ns", (200.0, 90_000.0), "a fit").expect("it is there");
        file.set("smt.memory", 0.7, "ratio", (0.5, 0.9), "a fit").expect("its section is there");
        file.set("copy.user", 0.1, "ns/B", (0.0, 1.0), "a fit").expect("a section of its own");
        let line =
            "wake = { value = 40000, unit = \"ns\", range = [200, 90000], how = \"fitted\", source = \"a fit\" }";
        let text = file.text();
        assert!(text.ends_with(&format!(
            "name = \"C6\"\n{line}\n\n[copy]\nuser = {{ value = 0.1, unit = \"ns/B\", range = [0, 1], how = \"fitted\", source = \"a fit\" }}\n"
        )), "{text}");
        assert_eq!(
            (file.value("smt.memory"), file.value("smt.speed"), file.value("idle.C1.wake")),
            (Some(0.7), Some(0.62), Some(600.0))
        );
        assert!(file.set("idle.C3.wake", 1.0, "ns", (0.0, 2.0), "a fit").is_err());
    }
}
