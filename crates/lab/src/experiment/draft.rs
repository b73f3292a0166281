//! What an experiment file and the command line say, before it is checked: pieces of text with their places.

use crate::machines::within;
use crate::mistake::{Mistake, Written};

/// An experiment as written. Command-line options are applied after the file; each method says how they change it.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The name for results; the file's name if none is given.
    pub name: Option<Written>,
    /// A sentence for the reader of the report.
    pub about: Option<Written>,
    /// The folder that the file's paths are relative to; empty is the current one.
    pub folder: String,
    pub machine: Option<Written>,
    /// Whether the file gives `machine`: a path in it is then relative to the file.
    pub machine_in_file: bool,
    pub workloads: Vec<DraftWorkload>,
    pub arms: Vec<DraftArm>,
    pub iterations: Option<Written>,
    pub seed: Option<Written>,
    pub hz: Option<Written>,
    pub costs: Option<Written>,
    pub time_limit_ms: Option<Written>,
    pub vintage: Option<Written>,
    pub stars: Option<Written>,
    pub ratio: Option<Written>,
    /// What changes in the middle of every run.
    pub timeline: Vec<DraftChange>,
    /// Figures of a real kernel to compare with.
    pub figures: Vec<DraftFigure>,
    /// The file with the real kernel's figures.
    pub recording: Option<Written>,
    /// Whether the workloads come from options already.
    pub(super) replaced: bool,
}

/// A workload as written.
#[derive(Clone, Debug)]
pub struct DraftWorkload {
    pub name: Written,
    pub title: Option<Written>,
    pub parameters: Vec<(Written, Vec<Written>)>,
    /// Rows and figures of a published table, and its `source`.
    pub published: Vec<(Written, Written)>,
    pub profile: Option<DraftProfile>,
    pub in_file: bool,
}

impl DraftWorkload {
    /// The path of the file that a workload of files takes as its only parameter. `of` says what the file is, as
    /// `trace:file=path of a ...` ends.
    pub(super) fn path_of_file(&self, folder: &str, of: &str) -> Result<String, Mistake> {
        let mut file = None;
        for (key, values) in &self.parameters {
            match (key.text.as_str(), &values[..]) {
                ("file", [value]) if file.is_none() && !value.text.is_empty() => file = Some(value),
                ("file", _) => return Err(key.mistake(format!("not one path as {}", key.quoted()), "file=path, once")),
                _ => return Err(key.unknown("parameter", ["file"])),
            }
        }
        let name = &self.name;
        let Some(file) = file else {
            return Err(
                name.mistake(format!("{} without a file", name.text), format!("{}:file=path of {of}", name.text))
            );
        };
        Ok(within(if self.in_file { folder } else { "" }, &file.text))
    }
}

/// `profile = { title = "...", functions = [...] }` as written.
#[derive(Clone, Debug)]
pub struct DraftProfile {
    pub title: Written,
    pub functions: Vec<Written>,
    /// Rows with their two figures, and their `source`.
    pub published: Vec<(Written, Vec<Written>)>,
}

/// One side of the comparison as written.
#[derive(Clone, Debug)]
pub struct DraftArm {
    pub name: Written,
    /// `None` if the name is that of one of the file's arms, or of a kernel.
    pub kernel: Option<Written>,
    pub settings: Vec<DraftSetting>,
}

/// A moment of the timeline as written.
#[derive(Clone, Debug)]
pub struct DraftChange {
    pub at: Written,
    /// The arms in which it happens; `None`: all.
    pub arms: Option<Vec<Written>>,
    /// In the order of the text.
    pub actions: Vec<DraftAction>,
}

/// One action at such a moment.
#[derive(Clone, Debug)]
pub enum DraftAction {
    Sysctl { key: Written, value: Written },
    Feature(Written),
    Offline(Written),
    Online(Written),
    Partitions(Vec<Written>),
    Cpufreq { key: Written, value: Written },
    Cpuidle { key: Written, value: Written },
    CpuDmaLatency(Written),
    Group { path: Written, file: Written, text: Written },
}

/// A figure of a real kernel as written: see [`crate::fidelity`].
#[derive(Clone, Debug)]
pub struct DraftFigure {
    pub of: Written,
    pub figure: Written,
    pub among: Option<Written>,
    pub over: Option<Written>,
    pub real: Option<Written>,
    pub within: Option<Written>,
    pub within_percent: Option<Written>,
    pub gap: Option<Written>,
}

/// One setting of an arm.
#[derive(Clone, Debug)]
pub struct DraftSetting {
    /// `None` if it follows from the key.
    pub kind: Option<SettingKind>,
    pub key: Written,
    pub value: Option<Written>,
}

/// Where the setting would be made on a real machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingKind {
    /// `/proc/sys/kernel/...`.
    Sysctl,
    /// `/sys/kernel/debug/sched_features`.
    Feature,
    /// The kernel command line.
    Parameter,
    /// `/sys/devices/system/cpu/cpufreq`.
    Cpufreq,
    /// `/sys/class/powercap`.
    Powercap,
    /// The source: one behaviour of a version, switched on its own.
    Behaviour,
    /// The build: CONFIG_HZ.
    Hz,
    /// The build: one of its other choices.
    Config,
}

impl Draft {
    /// `--machine M`: instead of the file's.
    pub fn machine_option(&mut self, text: &str) {
        self.machine = Some(Written::option("--machine", text));
        self.machine_in_file = false;
    }

    /// `--workload W[:key=value,...]` replaces all of the file's workloads; several options add up. A value may be a
    /// list, `groups=1+4+7`.
    pub fn workload_option(&mut self, text: &str) -> Result<(), Mistake> {
        self.workload(&Written::option("--workload", text))
    }

    /// The same for text from any place.
    pub fn workload(&mut self, whole: &Written) -> Result<(), Mistake> {
        let text = whole.text.as_str();
        if !std::mem::replace(&mut self.replaced, true) {
            self.workloads.clear();
        }
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some((name.len() + 1, rest))),
            None => (text, None),
        };
        let mut parameters = Vec::new();
        for (offset, piece) in rest.into_iter().flat_map(|(offset, rest)| pieces(rest, offset, ',')) {
            let Some((key, value)) = piece.split_once('=') else {
                let found = format!("`{piece}`");
                return Err(whole.part(offset, piece).mistake(found, "key=value, such as loops=100"));
            };
            let start = offset + key.len() + 1;
            let values = match key {
                // A path may contain a plus.
                "file" => vec![whole.part(start, value)],
                _ => pieces(value, start, '+').map(|(offset, value)| whole.part(offset, value)).collect(),
            };
            parameters.push((whole.part(offset, key), values));
        }
        self.workloads.push(DraftWorkload {
            name: whole.part(0, name),
            title: None,
            parameters,
            published: Vec::new(),
            profile: None,
            in_file: false,
        });
        Ok(())
    }

    /// `--arm NAME=KERNEL[,key=value...]` adds an arm, or replaces the file's arm of that name. `--arm NAME` selects an
    /// arm of the file, or a kernel under its own name; settings may follow there too. Once an option names arms, the
    /// file's others are left out if `select` says so ([`Draft::arm_options`]). A piece that begins with a digit
    /// continues the value before it, as in `isolcpus=1,3-5`: no setting and no feature has such a name.
    pub fn arm_option(&mut self, text: &str) -> DraftArm {
        let whole = Written::option("--arm", text);
        let mut pieces = with_lists(text);
        let (_, first) = pieces.next().expect("there is a first piece, if an empty one");
        let (name, kernel) = match first.split_once('=') {
            Some((name, kernel)) => (name, Some(whole.part(name.len() + 1, kernel))),
            None => (first, None),
        };
        let settings = pieces.flat_map(|(offset, piece)| settings_of(&whole, offset, piece)).collect();
        DraftArm { name: whole.part(0, name), kernel, settings }
    }

    /// The arms that options name, joined with the file's. With `select` they are the only arms (a single run);
    /// otherwise the file's arms stay.
    pub fn arm_options(&mut self, texts: &[String], select: bool) -> Result<(), Mistake> {
        let mut selected = Vec::new();
        let mut named: Vec<String> = Vec::new();
        for text in texts {
            let mut arm = self.arm_option(text);
            if named.contains(&arm.name.text) {
                let found = format!("the arm {} for the second time", arm.name.quoted());
                return Err(arm.name.mistake(found, "each arm once"));
            }
            named.push(arm.name.text.clone());
            let known = self.arms.iter().position(|other| other.name.text == arm.name.text);
            if arm.kernel.is_none() {
                match known {
                    Some(index) => {
                        let settings = std::mem::take(&mut arm.settings);
                        arm = self.arms[index].clone();
                        arm.settings.extend(settings);
                    }
                    None => arm.kernel = Some(arm.name.clone()),
                }
            }
            match known {
                _ if select => selected.push(arm),
                Some(index) => self.arms[index] = arm,
                None => self.arms.push(arm),
            }
        }
        if select && !texts.is_empty() {
            self.arms = selected;
        }
        Ok(())
    }
}

/// One piece of an arm's option: `key=value` or a feature's name. `features=X+NO_Y`, the form of experiment files,
/// makes one setting of each.
fn settings_of(whole: &Written, offset: usize, piece: &str) -> Vec<DraftSetting> {
    match piece.split_once('=') {
        Some((key @ ("features" | "sched_features"), names)) => pieces(names, offset + key.len() + 1, '+')
            .map(|(offset, name)| DraftSetting {
                kind: Some(SettingKind::Feature),
                key: whole.part(offset, name),
                value: None,
            })
            .collect(),
        Some((key, value)) => vec![DraftSetting {
            kind: None,
            key: whole.part(offset, key),
            value: Some(whole.part(offset + key.len() + 1, value)),
        }],
        None => vec![DraftSetting { kind: None, key: whole.part(offset, piece), value: None }],
    }
}

/// The pieces of `text` between separators, each with its byte offset; counting begins at `offset`.
fn pieces(text: &str, offset: usize, separator: char) -> impl Iterator<Item = (usize, &str)> {
    let mut at = offset;
    text.split(separator).map(move |piece| {
        let start = at;
        at += piece.len() + separator.len_utf8();
        (start, piece)
    })
}

/// The flags that may precede the list of `isolcpus=`.
const ISOLCPUS_FLAGS: [&str; 3] = ["domain", "nohz", "managed_irq"];

/// Whether a piece after a comma goes on with a list: it begins with a digit, or with what stands for numbers in lists of
/// CPUs. No setting has such a name.
fn is_of_list(piece: &str) -> bool {
    let word = piece.split([':', '-']).next().unwrap_or_default();
    piece.starts_with(|c: char| c.is_ascii_digit()) || word == "N" || word.eq_ignore_ascii_case("all")
}

/// The pieces of an arm's option between commas. Lists of numbers stay whole, together with the flags of `isolcpus=`.
fn with_lists(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = Some((0, text));
    std::iter::from_fn(move || {
        let (start, text) = rest?;
        let mut end = None;
        for (at, _) in text.match_indices(',') {
            let in_value = start > 0 && text[..at].contains('=');
            let next = text[at + 1..].split(',').next().unwrap_or_default();
            let flag = text.starts_with("isolcpus=") && ISOLCPUS_FLAGS.contains(&next);
            if !(in_value && (flag || is_of_list(next))) {
                end = Some(at);
                break;
            }
        }
        rest = end.map(|end| (start + end + 1, &text[end + 1..]));
        Some((start, &text[..end.unwrap_or(text.len())]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_option_falls_into_its_pieces() {
        let mut draft = Draft::default();
        draft.workload_option("hackbench-pipes:groups=1+4,loops=100").unwrap();
        let workload = &draft.workloads[0];
        assert_eq!(workload.name.text, "hackbench-pipes");
        let [(groups, values), (loops, _)] = &workload.parameters[..] else { panic!("two parameters") };
        assert_eq!((groups.text.as_str(), loops.text.as_str()), ("groups", "loops"));
        assert_eq!(
            values.iter().map(|v| (v.text.as_str(), v.at.column)).collect::<Vec<_>>(),
            [("1", Some(24)), ("4", Some(26))]
        );
        let error = draft.workload_option("pipetest:loops").unwrap_err().to_string();
        assert!(
            error.starts_with("--workload pipetest:loops, column 10: found `loops`; expected key=value"),
            "{error}"
        );
    }

    #[test]
    fn lists_of_an_arms_option_stay_whole() {
        let settings = |text: &str| {
            let said = |written: &Written| written.text.clone();
            let arm = Draft::default().arm_option(text);
            let pairs: Vec<_> = arm.settings.iter().map(|one| (said(&one.key), one.value.as_ref().map(said))).collect();
            let columns: Vec<_> = arm.settings.iter().map(|one| one.key.at.column).collect();
            (arm.kernel.map(|kernel| kernel.text), pairs, columns)
        };
        let (kernel, pairs, columns) = settings("a=v6.1,isolcpus=domain,1,3-5,hz=1000,nohz_full=2,4,NO_HRTICK");
        assert_eq!(kernel.as_deref(), Some("v6.1"));
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        let expected =
            [("isolcpus", Some("domain,1,3-5")), ("hz", Some("1000")), ("nohz_full", Some("2,4")), ("NO_HRTICK", None)];
        assert_eq!(pairs, expected);
        assert_eq!(columns, [Some(8), Some(30), Some(38), Some(52)]);
        // There is no value to continue, so it is a piece of its own, which is refused.
        let keys = |text: &str| settings(text).1.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(
            (keys("a=v6.1,3"), keys("a=v6.1,NO_HRTICK,3-5")),
            (vec!["3".to_string()], vec!["NO_HRTICK".to_string(), "3-5".to_string()])
        );
    }

    #[test]
    fn arm_options_replace_by_name_or_add() {
        let mut draft = Draft::default();
        draft.arm_options(&["a=v4.15,NO_SIS_PROP,hz=1000".to_string(), "v4.16".to_string()], false).unwrap();
        assert_eq!(draft.arms[0].settings.len(), 2);
        assert_eq!(draft.arms[1].kernel.as_ref().unwrap().text, "v4.16");
        draft.arm_options(&["a=v4.16".to_string()], false).unwrap();
        assert_eq!((draft.arms.len(), draft.arms[0].settings.len()), (2, 0));
        draft.arm_options(&["v4.16".to_string()], true).unwrap();
        assert_eq!(draft.arms.len(), 1);
        // Settings may also follow an arm's or a kernel's own name.
        draft.arm_options(&["v4.16,hz=100,preempt=full".to_string(), "v6.1,NO_SIS_UTIL".to_string()], true).unwrap();
        let keys = |arm: &DraftArm| arm.settings.iter().map(|setting| setting.key.text.clone()).collect::<Vec<_>>();
        assert_eq!(draft.arms.iter().map(|arm| arm.name.text.as_str()).collect::<Vec<_>>(), ["v4.16", "v6.1"]);
        assert_eq!(draft.arms[1].kernel.as_ref().map(|kernel| kernel.text.as_str()), Some("v6.1"));
        assert_eq!(
            (keys(&draft.arms[0]), keys(&draft.arms[1])),
            (vec!["hz".to_string(), "preempt".to_string()], vec!["NO_SIS_UTIL".to_string()])
        );

        let twice = draft.arm_options(&["a=v4.15".to_string(), "a=v4.16".to_string()], false).unwrap_err();
        assert!(twice.to_string().contains("found the arm `a` for the second time"), "{twice}");
    }
}
